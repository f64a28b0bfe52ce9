#include <new>
#include "route.h"
void route(void) { ::operator delete(keep(::operator new(SIZE, std::align_val_t(128))), std::align_val_t(128)); }
