// The recorder without ExecuTorch: what is wrong is told, what comes after the end does nothing. TRACE
#include <cstdio>

#include "etmem/recorder.hpp"

namespace {

alignas(16) unsigned char memory[16 * 1024];
etmem::Recorder recorder;
etmem_heap pool = ETMEM_HEAP("pool", "delegate:Mine", "workspace");
etmem_heap again = ETMEM_HEAP("pool", "delegate:Mine", "workspace");
etmem_heap npu = ETMEM_DEVICE_HEAP(ETMEM_NPU_MEMORY, "npu", "delegate:Mine", "workspace");

void use() {
  const etmem_id outer = etmem_begin("outer");
  etmem_begin("inner");
  etmem_end(outer);
  etmem_end(outer);
  etmem_heap_alloc(&pool, reinterpret_cast<void*>(0x1000), 100);
  etmem_heap_alloc(&again, reinterpret_cast<void*>(0x2000), 50);
  etmem_heap_alloc(&npu, reinterpret_cast<void*>(0x1000), 4096);
  etmem_heap_alloc(&pool, reinterpret_cast<void*>(~uintptr_t{0}), 8);
  etmem_counter("depth", ETMEM_NUMBER, 3);
  etmem_label(reinterpret_cast<void*>(0x1000), 100, "table");
  etmem_heap_free(&pool, reinterpret_cast<void*>(0x1000));
}

}  // namespace

int main(int, char** argv) {
  etmem_set_api(recorder.api());
  use();  // nothing records yet
  if (recorder.start(memory, 1024) || recorder.start(memory + 1, sizeof memory - 1)) return 2;
  if (!recorder.start(memory, sizeof memory)) return 3;
  use();
  recorder.stop();
  FILE* out = std::fopen(argv[1], "wb");
  if (out == nullptr || std::fwrite(recorder.data(), 1, recorder.bytes(), out) != recorder.bytes()) return 4;
  std::fclose(out);
  use();
  recorder.stop();
  return recorder.start(memory, sizeof memory) ? 5 : 0;
}
