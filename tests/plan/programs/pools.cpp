// Loads a method with bump allocators and prints what they hold: "METHOD LOADED EXECUTED TEMP".
// usage: pools MODEL.pte METHOD TEMP_POOL(0|1) [OPERATOR ...]; the operators get kernels that do nothing.
#include <executorch/extension/data_loader/buffer_data_loader.h>
#include <executorch/runtime/executor/memory_manager.h>
#include <executorch/runtime/executor/method.h>
#include <executorch/runtime/executor/program.h>
#include <executorch/runtime/kernel/operator_registry.h>
#include <executorch/runtime/platform/runtime.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <vector>

using namespace executorch::runtime;

namespace {

constexpr size_t kPoolBytes = 1 << 20;
alignas(64) uint8_t method_pool[kPoolBytes];
alignas(64) uint8_t temp_pool[kPoolBytes];

class HighWater : public MemoryAllocator {
 public:
  explicit HighWater(uint8_t* pool) : MemoryAllocator(kPoolBytes, pool) {}

  void* allocate(size_t size, size_t alignment) override {
    void* found = MemoryAllocator::allocate(size, alignment);
    high = used_size() > high ? used_size() : high;
    return found;
  }

  size_t high = 0;
};

void nothing(KernelRuntimeContext&, Span<EValue*>) {}

}  // namespace

int main(int count, char** words) {
  runtime_init();
  for (int i = 4; i < count; ++i) {
    if (!registry_has_op_function(words[i]) && register_kernel(Kernel(words[i], nothing)) != Error::Ok) {
      return 2;
    }
  }
  std::ifstream stream(words[1], std::ios::binary);
  std::vector<uint8_t> file((std::istreambuf_iterator<char>(stream)), {});
  executorch::extension::BufferDataLoader loader(file.data(), file.size());
  auto program = Program::load(&loader, Program::Verification::Minimal);
  if (!program.ok()) {
    return 3;
  }
  auto meta = program->method_meta(words[2]);
  std::vector<std::vector<uint8_t>> buffers;
  for (size_t i = 0; i < meta->num_memory_planned_buffers(); ++i) {
    buffers.emplace_back(meta->memory_planned_buffer_size(i).get());
  }
  std::vector<Span<uint8_t>> spans;
  for (auto& buffer : buffers) {
    spans.push_back({buffer.data(), buffer.size()});
  }
  HierarchicalAllocator planned({spans.data(), spans.size()});
  HighWater method_allocator(method_pool);
  HighWater temp_allocator(temp_pool);
  MemoryManager memory(&method_allocator, &planned, std::atoi(words[3]) ? &temp_allocator : nullptr);
  auto method = program->load_method(words[2], &memory);
  if (!method.ok()) {
    return 4;
  }
  size_t loaded = method_allocator.used_size();
  size_t executed = method->execute() == Error::Ok ? method_allocator.used_size() : 0;
  std::printf("%zu %zu %zu\n", loaded, executed, temp_allocator.high);
  return 0;
}
