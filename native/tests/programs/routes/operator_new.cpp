#include "route.h"
void route(void) { ::operator delete(keep(::operator new(SIZE))); }
