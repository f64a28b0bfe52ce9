/* Refused where something is mapped: nothing changes. */
#include "mapping.h"
int main(void) {
  char* p = map(10);
  return mmap(p, 3 * UNIT, ACCESS, PRIVATE | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED ? 0 : 3;
}
