/* What the system says: RSS and its high water, maps, resident pages, modules. */
#pragma once

#include <stdint.h>

#include "trace_format.h"

namespace etmem::observe {

/* Reads RSS and the high water since the last sample, and resets that. */
void rss(format::RssLabel label, uint32_t scope);

/* RSS, malloc's own figures, /proc/self/maps and resident pages, raw. Nothing in a dry run. */
void snapshot(uint32_t name, uint32_t scope);

/* Records the modules that appeared since the last call; `scope` is the one they belong to. */
void modules(uint32_t scope);

/* Forgets which modules the last trace has been told of. */
void begin_trace();

struct Options {
  bool keep_rusage;  // do not reset the high water: resetting lowers the program's own ru_maxrss
  bool dry;          // residency and balance would be those of what was not computed
  bool emulated;     // RSS and pages would be the emulator's, its translations included
};
extern Options options;

}  // namespace etmem::observe
