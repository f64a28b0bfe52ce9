/* The calling thread's stack of return addresses. */
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace etmem::call_stack {

constexpr size_t kDepth = 64;

struct Frames {
  uint64_t address[kDepth];  // innermost first; the agent's own are left out
  size_t count;
};

/* By a table of rows, and where those do not do by libgcc: then false. Takes no lock of its own, and allocates nothing
 * but the table, once. */
bool walk(Frames& frames);

/* The same by libgcc alone, which decodes each frame anew. */
void walk_by_libgcc(Frames& frames);

}  // namespace etmem::call_stack
