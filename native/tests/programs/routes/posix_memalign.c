#include "route.h"
void route(void) {
  void* p;
  if (posix_memalign(&p, 64, SIZE) == 0) free(keep(p));
}
