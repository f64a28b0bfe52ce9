#include "route.h"
void route(void) { free(keep(realloc(malloc(4 * SIZE), SIZE))); }
