/* A program that tracks allocations itself, as ExecuTorch's EventTracer lets it, and writes the ETDump.
 * usage: track_allocations OUT.etdp */
#include <executorch/devtools/etdump/etdump_flatcc.h>
#include <executorch/runtime/platform/runtime.h>

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  executorch::runtime::runtime_init();
  executorch::etdump::ETDumpGen tracer;
  tracer.create_event_block("Execute");
  /* Right after the block is made and before any event: anywhere else it aborts. */
  const auto planned = tracer.track_allocator("planned");
  const auto scratch = tracer.track_allocator("scratch");
  const auto entry = tracer.start_profiling("Method::execute");
  tracer.track_allocation(planned, 1000);
  tracer.track_allocation(scratch, 20);
  tracer.track_allocation(planned, 3);
  tracer.end_profiling(entry);
  const auto result = tracer.get_etdump_data();
  FILE* file = result.buf != nullptr ? fopen(argv[1], "wb") : nullptr;
  if (file == nullptr || fwrite(result.buf, 1, result.size, file) != result.size) return 1;
  free(result.buf);
  printf("%u %u\n", static_cast<unsigned>(planned), static_cast<unsigned>(scratch));
  return fclose(file);
}
