#include "route.h"
void route(void) { free(keep(reallocarray(NULL, SIZE / 4, 4))); }
