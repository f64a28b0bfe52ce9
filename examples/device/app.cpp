// An application that records itself, as on a device: no agent, nothing preloaded, 16 KiB of its own memory for the
// recorder, and a flush callback in place of a file system. Here the callback writes a file: app MODEL.pte TRACE.etmem
#include <executorch/extension/tensor/tensor.h>

#include <cstdio>
#include <ctime>
#include <vector>

#include "etmem/module.hpp"
#include "etmem/recorder.hpp"

using executorch::extension::TensorPtr;
using executorch::runtime::Error;
using executorch::runtime::EValue;

namespace {

alignas(16) unsigned char memory[16 * 1024];
etmem::Recorder recorder;

// A device sends the piece with its offset; whoever receives it puts it there.
bool send(void* out, uint64_t offset, const void* data, size_t bytes) {
  FILE* file = static_cast<FILE*>(out);
  return std::fseek(file, static_cast<long>(offset), SEEK_SET) == 0 && std::fwrite(data, 1, bytes, file) == bytes;
}

uint64_t now_ns() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1000000000u + static_cast<uint64_t>(time.tv_nsec);
}

int run(const char* path) {
  etmem::TracedModule module(path, executorch::extension::Module::LoadMode::File);  // instead of a Module
  if (module.load_method("forward") != Error::Ok) return 3;
  const auto meta = module.method_meta("forward");
  if (!meta.ok()) return 3;
  std::vector<TensorPtr> tensors;
  std::vector<EValue> inputs;
  for (size_t i = 0; i < meta->num_inputs(); ++i) {
    const auto sizes = meta->input_tensor_meta(i)->sizes();
    tensors.push_back(executorch::extension::ones({sizes.begin(), sizes.end()}));
    inputs.emplace_back(tensors.back());
  }
  for (int turn = 0; turn < 2; ++turn) {
    if (!module.execute("forward", inputs).ok()) return 4;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 1;
  // Under `etmem run` there is an agent, which records all of it, malloc too.
  if (etmem_get_api() != nullptr) return run(argv[1]);
  FILE* out = std::fopen(argv[2], "wb");
  if (out == nullptr) return 2;
  etmem::RecorderOptions options;
  options.flush = send;
  options.context = out;
  options.now_ns = now_ns;
  options.arch = "my-board";
  options.own_bytes = 8192;
  if (!recorder.start(memory, sizeof memory, options)) return 2;
  etmem_set_api(recorder.api());
  const int status = run(argv[1]);
  recorder.stop();
  std::fclose(out);
  if (recorder.dropped() != 0) std::fprintf(stderr, "%llu events dropped\n", (unsigned long long)recorder.dropped());
  return status;
}
