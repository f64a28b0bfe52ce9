#include "mapping.h"
int main(void) { return munmap(map(10), 3 * UNIT); }
