/* Where the calls of the stubs go: the hooks library built for the caller's ExecuTorch, or the original. */
#pragma once

#include "etmem/etmem.h"

namespace etmem::stubs {

struct Options {
  const char* hooks_path;  // a hooks library built beforehand, or nullptr
  const char* builder;     // the Python that builds one, or nullptr
  bool dry;
};
extern Options options;
extern const etmem_api* api;

/* The application traces its ExecuTorch itself: from now on the stubs lead to the originals. False when hooks were
 * opened for one already, which then stay. */
bool take_runtime();

}  // namespace etmem::stubs
