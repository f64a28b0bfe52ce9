/* A mapping put over the middle of another one takes its place. */
#include "mapping.h"
int main(void) {
  char* p = map(10);
  sure(mmap(p + 3 * UNIT, 2 * UNIT, ACCESS, PRIVATE | MAP_FIXED, -1, 0));
  return 0;
}
