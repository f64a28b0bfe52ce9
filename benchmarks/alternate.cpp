// The cost of recording, in one process: MODEL METHOD AGENT HOOKS TRACE ROUNDS INFERENCES.
// The method is loaded while recording; then rounds of inferences with and without. Prints "on off" in ns per round.
#include <dlfcn.h>
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "recording.h"

using executorch::extension::Module;
using executorch::runtime::Error;
using executorch::runtime::EValue;

namespace {

using Attach = int (*)(const char*, const etmem::recording_options*);

struct Recorder {
  Attach attach;
  void (*detach)();
  const char* path;
  etmem::recording_options options;

  void on() {
    if (attach(path, &options) != 0) std::exit(7);
  }
};

// The first inference of a recording is not timed: slots are resolved and pages touched in it.
double timed(Module& module, const std::string& method, const std::vector<EValue>& inputs, int count) {
  if (!module.execute(method, inputs).ok()) std::exit(6);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i) {
    if (!module.execute(method, inputs).ok()) std::exit(6);
  }
  const auto end = std::chrono::steady_clock::now();
  return std::chrono::duration<double, std::nano>(end - start).count() / count;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 8) return 2;
  void* agent = dlopen(argv[3], RTLD_NOW | RTLD_GLOBAL);
  if (agent == nullptr) return 3;
  Recorder recorder = {};
  recorder.attach = reinterpret_cast<Attach>(dlsym(agent, "etmem_attach"));
  recorder.detach = reinterpret_cast<void (*)()>(dlsym(agent, "etmem_detach"));
  recorder.path = argv[5];
  recorder.options.stacks = "XnnpackBackend";
  recorder.options.hooks_path = argv[4];
  recorder.options.builder = "";
  recorder.options.notes = "";
  setenv("ETMEM_STACKS", "XnnpackBackend", 1);

  const std::string method = argv[2];
  const int rounds = std::atoi(argv[6]), count = std::atoi(argv[7]);
  recorder.on();
  Module module(argv[1], Module::LoadMode::Mmap);
  if (module.load_method(method) != Error::Ok) return 4;
  auto meta = module.method_meta(method);
  std::vector<executorch::extension::TensorPtr> tensors;
  std::vector<EValue> inputs;
  for (size_t i = 0; i < meta->num_inputs(); ++i) {
    const auto tensor = meta->input_tensor_meta(i);
    tensors.push_back(
        executorch::extension::zeros({tensor->sizes().begin(), tensor->sizes().end()}, tensor->scalar_type()));
    inputs.emplace_back(tensors.back());
  }
  for (int i = 0; i < 3; ++i) timed(module, method, inputs, 1);  // after two, no snapshot is taken any more
  recorder.detach();
  for (int round = 0; round < rounds; ++round) {
    double found[2];
    for (int turn = 0; turn < 2; ++turn) {
      const bool on = (turn ^ round & 1) == 0;  // which comes first alternates too
      if (on) recorder.on();
      found[on] = timed(module, method, inputs, count);
      if (on) recorder.detach();
    }
    std::printf("%.0f %.0f\n", found[1], found[0]);
  }
}
