#include "route.h"
void route(void) { keep_forever(sbrk(SIZE)); }
