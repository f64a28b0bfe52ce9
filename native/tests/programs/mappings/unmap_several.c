/* One munmap over parts of two mappings and what is between them. */
#include "mapping.h"
int main(void) {
  char* p = map(12);
  munmap(p + 5 * UNIT, 2 * UNIT);
  sure(mmap(p + 5 * UNIT, 2 * UNIT, PROT_READ, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
  return munmap(p + 4 * UNIT, 4 * UNIT);
}
