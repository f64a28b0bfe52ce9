#include "route.h"
#include <dlfcn.h>
void route(void) {
  void* (*allocate)(size_t) = (void* (*)(size_t))dlsym(RTLD_DEFAULT, "malloc");
  free(keep(allocate(SIZE)));
}
