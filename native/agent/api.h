/* The table that clients reach by dlsym(RTLD_DEFAULT, "etmem_api_v1"). */
#pragma once

#include "etmem/etmem.h"
#include "state.h"

namespace etmem {

/* Tells a new trace of the heaps that clients registered in earlier ones, and forgets their segments. */
void begin_clients();

/* The last of the inferences that a client announced has ended, with a snapshot of its own. */
bool inferences_are_over();

}  // namespace etmem

extern "C" ETMEM_EXPORT const struct etmem_api etmem_api_v1;
