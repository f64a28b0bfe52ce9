/* Address space without access is reserved, not memory; a part of it that gets access is. */
#include "mapping.h"
int main(void) {
  char* p = sure(mmap(NULL, 1000 * UNIT, PROT_NONE, PRIVATE | MAP_NORESERVE, -1, 0));
  return mprotect(p + 100 * UNIT, 5 * UNIT, ACCESS);
}
