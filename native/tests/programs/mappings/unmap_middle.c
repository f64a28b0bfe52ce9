#include "mapping.h"
int main(void) { return munmap(map(10) + 2 * UNIT, 3 * UNIT); }
