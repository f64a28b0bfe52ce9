/* Memory that may only be read is still memory. */
#include "mapping.h"
int main(void) {
  char* p = touched(10);
  return mprotect(p + 4 * UNIT, UNIT, PROT_READ);
}
