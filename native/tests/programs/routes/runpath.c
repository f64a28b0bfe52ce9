/* A bare soname found only by the caller's RUNPATH: breaks where a profiler wraps dlopen. */
#include "route.h"
#include <dlfcn.h>
void route(void) {
  void* library = dlopen("libplugin.so", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fputs(dlerror(), stderr);
    exit(3);
  }
  void* (*allocate)(size_t) = (void* (*)(size_t))dlsym(library, "plugin_allocate");
  free(keep(allocate(SIZE)));
}
