/* What deepbind.c and runpath.c open. */
#include <stdlib.h>
void* plugin_allocate(size_t bytes) { return malloc(bytes); }
