#include "route.h"
static void* (*volatile allocate)(size_t) = malloc;
void route(void) { free(keep(allocate(SIZE))); }
