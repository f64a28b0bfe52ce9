#include "route.h"
void route(void) { free(keep(malloc(SIZE))); }
