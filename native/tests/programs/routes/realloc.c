#include "route.h"
void route(void) { free(keep(realloc(malloc(10), SIZE))); }
