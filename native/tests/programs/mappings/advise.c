/* DONTNEED and FREE give pages back and keep the mapping. */
#include "mapping.h"
int main(void) {
  char* p = touched(10);
  return madvise(p + UNIT, 2 * UNIT, MADV_DONTNEED) | madvise(p + 5 * UNIT, 3 * UNIT, MADV_FREE);
}
