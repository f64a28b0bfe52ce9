/* Access taken from the middle: that part is reserved again. */
#include "mapping.h"
int main(void) {
  char* p = touched(10);
  return mprotect(p + 4 * UNIT, UNIT, PROT_NONE);
}
