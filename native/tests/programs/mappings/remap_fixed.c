/* Moved onto another mapping, whose middle it takes. */
#include "mapping.h"
int main(void) {
  char* p = touched(2);
  char* q = map(12);
  sure(mremap(p, 2 * UNIT, 2 * UNIT, MREMAP_MAYMOVE | MREMAP_FIXED, q + 5 * UNIT));
  return 0;
}
