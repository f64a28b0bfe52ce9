/* Advice on page sizes changes what backs a mapping, not the mapping. */
#include "mapping.h"
int main(void) {
  char* p = map(30);
  madvise(p, 30 * UNIT, MADV_HUGEPAGE);
  memset(p, 1, 30 * UNIT);
  return 0;
}
