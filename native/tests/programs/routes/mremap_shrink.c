#include "route.h"
void route(void) {
  void* p = mmap(NULL, 4 * SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(keep(mremap(p, 4 * SIZE, SIZE, 0)), SIZE);
}
