/* The same range mapped again: once, not twice. */
#include "mapping.h"
int main(void) {
  char* p = map(10);
  sure(mmap(p, 10 * UNIT, ACCESS, PRIVATE | MAP_FIXED, -1, 0));
  return 0;
}
