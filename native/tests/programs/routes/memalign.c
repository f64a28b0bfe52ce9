#include "route.h"
void route(void) { free(keep(memalign(64, SIZE))); }
