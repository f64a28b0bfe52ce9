// An application that records itself into 16 KiB: MODEL ITERATIONS TRACE [small|slow]
// Nothing is preloaded; the pieces are appended to the file as a device would send them. `small`: no flush, the buffer
// is all there is. `slow`: the link breaks after a few pieces.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "etmem/module.hpp"
#include "etmem/recorder.hpp"
#include "ones.hpp"

namespace {

alignas(16) unsigned char memory[16 * 1024];
etmem::Recorder recorder;
int pieces_left = -1;

bool send(void* file, uint64_t offset, const void* data, size_t bytes) {
  if (pieces_left == 0 && offset != 0) return false;
  if (pieces_left > 0) --pieces_left;
  FILE* out = static_cast<FILE*>(file);
  std::fseek(out, static_cast<long>(offset), SEEK_SET);
  return std::fwrite(data, 1, bytes, out) == bytes;
}

uint64_t ticks() {
  static uint64_t now = 0;
  return now += 1000;
}

int run(const char* path, int iterations) {
  etmem::TracedModule module(path, executorch::extension::Module::LoadMode::File);
  if (module.load_method("forward") != executorch::runtime::Error::Ok) return 3;
  const auto meta = module.method_meta("forward");
  if (!meta.ok()) return 4;
  const Ones inputs(*meta);
  for (int i = 0; i < iterations; ++i) {
    if (!module.execute("forward", inputs.values()).ok()) return 5;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const bool small = argc > 4 && std::strcmp(argv[4], "small") == 0;
  if (argc > 4 && std::strcmp(argv[4], "slow") == 0) pieces_left = 4;
  FILE* out = std::fopen(argv[3], "wb+");
  if (out == nullptr) return 2;
  etmem::RecorderOptions options;
  options.flush = small ? nullptr : send;
  options.context = out;
  options.now_ns = ticks;
  options.page_bytes = 16384;
  options.arch = "test-device";
  if (!recorder.start(memory, sizeof memory, options)) return 6;
  etmem_set_api(recorder.api());
  const int status = run(argv[1], std::atoi(argv[2]));
  recorder.stop();
  if (small) std::fwrite(recorder.data(), 1, recorder.bytes(), out);
  std::fclose(out);
  return status;
}
