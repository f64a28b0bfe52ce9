// A static application: its backend keeps 300,000 bytes of malloc's and takes 1,000 in each inference. TRACE ITERATIONS
// With ETMEM_APPLICATION_TRACED it links etmem in; without, it knows nothing of etmem.
#include <executorch/extension/data_loader/buffer_data_loader.h>
#include <executorch/runtime/backend/interface.h>
#include <executorch/runtime/executor/memory_manager.h>
#include <executorch/runtime/executor/program.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#ifdef ETMEM_APPLICATION_TRACED
#include "etmem/recorder.hpp"
#include "etmem/wrap.hpp"
#endif

using namespace executorch::runtime;

namespace {

class KeepingBackend final : public BackendInterface {
 public:
  bool is_available() const override { return true; }
  Result<DelegateHandle*> init(BackendInitContext& context, FreeableBuffer*, ArrayRef<CompileSpec>) const override {
    if (context.get_runtime_allocator()->allocate(64) == nullptr) return Error::MemoryAllocationFailed;
    void* kept = std::malloc(300000);
    std::memset(kept, 1, 300000);
    return static_cast<DelegateHandle*>(kept);
  }
  Error execute(BackendExecutionContext& context, DelegateHandle*, Span<EValue*>) const override {
    if (context.get_temp_allocator()->allocate(128) == nullptr) return Error::MemoryAllocationFailed;
    void* volatile scratch = std::malloc(500);
    scratch = std::realloc(scratch, 1000);
    std::free(scratch);
    return Error::Ok;
  }
  void destroy(DelegateHandle* handle) const override { std::free(handle); }
};

KeepingBackend backend;
alignas(16) uint8_t planned[4096], method_pool[4096], temp_pool[1024];

int run(const char* text, int iterations) {
  ::executorch::extension::BufferDataLoader loader(text, std::strlen(text) + 1);
  auto program = Program::load(&loader);
  if (!program.ok()) return 3;
  Span<uint8_t> buffers[] = {{planned, sizeof planned}};
  HierarchicalAllocator hierarchical({buffers, 1});
  MemoryAllocator method_allocator(sizeof method_pool, method_pool), temp_allocator(sizeof temp_pool, temp_pool);
  MemoryManager memory(&method_allocator, &hierarchical, &temp_allocator);
  auto method = program->load_method("forward", &memory);
  if (!method.ok()) return 4;
  for (int i = 0; i < iterations; ++i) {
    if (method->execute() != Error::Ok) return 5;
  }
  return 0;
}

#ifdef ETMEM_APPLICATION_TRACED
alignas(16) unsigned char memory[16 * 1024];
etmem::Recorder recorder;

bool append(void* file, uint64_t offset, const void* data, size_t bytes) {
  std::fseek(static_cast<FILE*>(file), static_cast<long>(offset), SEEK_SET);
  return std::fwrite(data, 1, bytes, static_cast<FILE*>(file)) == bytes;
}
#endif

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 || register_backend({"KeepingBackend", &backend}) != Error::Ok) return 2;
  const char* text = "4096 KeepingBackend";
#ifdef ETMEM_APPLICATION_TRACED
  static char file_buffer[4096];
  FILE* out = std::fopen(argv[1], "wb");
  if (out == nullptr) return 2;
  std::setvbuf(out, file_buffer, _IOFBF, sizeof file_buffer);
  etmem::RecorderOptions options;
  options.flush = append;
  options.context = out;
#ifdef ETMEM_WRAP_MALLOC
  options.follows_malloc = true;
#endif
  if (!recorder.start(memory, sizeof memory, options)) return 6;
  etmem_set_api(recorder.api());
  const int status = run(text, std::atoi(argv[2]));
  recorder.stop();
  std::fclose(out);
  return status;
#else
  return run(text, std::atoi(argv[2]));
#endif
}
