/* ExecuTorch's own trace, for those who compare it with and without the profiler. */
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <executorch/runtime/core/event_tracer.h>

namespace etmem::runner {

/* Null where this ExecuTorch comes without ETDump. `debug` is where intermediate outputs go; empty: none. */
std::unique_ptr<executorch::runtime::EventTracer> make_etdump(std::vector<uint8_t>& debug);

/* Writes what the tracer of make_etdump holds. */
bool write_etdump(executorch::runtime::EventTracer* tracer, const std::string& path);

}  // namespace etmem::runner
