/* The Python frames of the calling thread, where it runs Python. */
#pragma once

#include <stdint.h>

namespace etmem::python_stack {

/* Records them with the scope. Nothing where there is no interpreter, or the thread does not hold its lock: frames may
 * be looked at only then. What the interpreter allocates meanwhile is the profiler's. */
void record(uint32_t scope);

}  // namespace etmem::python_stack
