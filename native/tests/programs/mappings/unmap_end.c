#include "mapping.h"
int main(void) { return munmap(map(10) + 6 * UNIT, 4 * UNIT); }
