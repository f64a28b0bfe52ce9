#include "route.h"
void route(void) { free(keep(calloc(SIZE / 4, 4))); }
