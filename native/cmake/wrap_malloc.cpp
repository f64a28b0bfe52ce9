#include "etmem/wrap_malloc.hpp"
