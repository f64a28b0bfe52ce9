/* May not move and cannot grow: all is as it was. */
#include "mapping.h"
int main(void) {
  char* p = map(10);
  sure(mmap(p + 5 * UNIT, 5 * UNIT, PROT_READ, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
  return mremap(p, 5 * UNIT, 6 * UNIT, 0) == MAP_FAILED ? 0 : 3;
}
