#include "mapping.h"
int main(void) {
  memset(sure(mmap(NULL, 6 * UNIT, ACCESS, MAP_SHARED | MAP_ANONYMOUS, -1, 0)), 1, 6 * UNIT);
  return 0;
}
