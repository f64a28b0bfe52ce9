#include "route.h"
void route(void) { free(keep(pvalloc(SIZE - 100))); }
