/* The table that clients reach by dlsym(RTLD_DEFAULT, "etmem_api_v1"). */
#pragma once

#include "etmem/etmem.h"
#include "state.h"

extern "C" ETMEM_EXPORT const struct etmem_api etmem_api_v1;
