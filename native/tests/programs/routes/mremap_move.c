#include "route.h"
void route(void) {
  void* p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  void* to = mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(keep(mremap(p, 4096, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, to)), SIZE);
}
