#include "route.h"
extern void* __libc_malloc(size_t);
void route(void) { keep_forever(__libc_malloc(SIZE)); }
