/* A library opened RTLD_DEEPBIND calls malloc of its own dependencies first. */
#include "route.h"
#include <dlfcn.h>
void route(void) {
  void* library = dlopen(PLUGIN, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  if (library == NULL) {
    fputs(dlerror(), stderr);
    exit(3);
  }
  void* (*allocate)(size_t) = (void* (*)(size_t))dlsym(library, "plugin_allocate");
  keep_forever(allocate(SIZE));
}
