#include "route.h"
void route(void) { free(keep(aligned_alloc(4096, SIZE))); }
