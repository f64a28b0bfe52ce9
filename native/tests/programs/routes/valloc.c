#include "route.h"
void route(void) { free(keep(valloc(SIZE))); }
