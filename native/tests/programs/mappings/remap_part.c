/* The middle of a mapping moved elsewhere and grown: both ends stay. */
#include "mapping.h"
int main(void) {
  char* p = touched(10);
  sure(mremap(p + 3 * UNIT, 2 * UNIT, 40 * UNIT, MREMAP_MAYMOVE));
  return 0;
}
