/* An address inside of a page is refused: the mapping stays. */
#include "mapping.h"
int main(void) { return munmap(map(10) + 1, 10 * UNIT) == -1 ? 0 : 3; }
