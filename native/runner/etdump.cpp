#include "etdump.h"

#include <cstdlib>

#include "outputs.h"

#ifdef ETMEM_ETDUMP

#include <executorch/devtools/etdump/etdump_flatcc.h>

namespace etmem::runner {

using executorch::etdump::ETDumpGen;
using executorch::runtime::EventTracer;

std::unique_ptr<EventTracer> make_etdump(std::vector<uint8_t>& debug) {
  auto tracer = std::make_unique<ETDumpGen>();
  if (!debug.empty()) {
    const auto set = tracer->set_debug_buffer({debug.data(), debug.size()});
    if (!set.ok()) return nullptr;
    tracer->set_event_tracer_debug_level(executorch::runtime::EventTracerDebugLogLevel::kIntermediateOutputs);
  }
  return tracer;
}

bool write_etdump(EventTracer* tracer, const std::string& path) {
  const auto result = static_cast<ETDumpGen*>(tracer)->get_etdump_data();
  const bool written = result.buf != nullptr && write_file(path, result.buf, result.size);
  free(result.buf);
  return written;
}

}  // namespace etmem::runner

#else

namespace etmem::runner {

std::unique_ptr<executorch::runtime::EventTracer> make_etdump(std::vector<uint8_t>&) { return nullptr; }

bool write_etdump(executorch::runtime::EventTracer*, const std::string&) { return false; }

}  // namespace etmem::runner

#endif
