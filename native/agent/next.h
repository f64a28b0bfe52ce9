/* The next definition of each libc function that we interpose, from hooks.def. */
#pragma once

#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* C23; declared here because libc may lack them. */
extern "C" void free_sized(void*, size_t);
extern "C" void free_aligned_sized(void*, size_t, size_t);

namespace etmem::next {

struct Functions {
#define ETMEM_LIBC(name) decltype(&::name) name;
#include "hooks.def"
};

/* Until `resolve` has run, the entries that allocate serve from the bootstrap arena. */
extern Functions call;

/* The definitions after ours: for a preloaded agent. */
void resolve();

/* The definitions that the process uses: for an agent that was opened later and comes before nobody. */
void resolve_default();

}  // namespace etmem::next
