#include "route.h"
#include <sys/syscall.h>
void route(void) {
  keep_forever((void*)syscall(SYS_mmap, NULL, (size_t)SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}
