#include "route.h"
void route(void) { munmap(keep(mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)), SIZE); }
