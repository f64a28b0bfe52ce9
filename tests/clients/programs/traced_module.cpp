// An application of one's own: loads a program and runs forward a few times. MODEL ITERATIONS
#include <cstdlib>
#include <vector>

#include <executorch/extension/tensor/tensor.h>
#include "etmem/module.hpp"

using executorch::runtime::EValue;

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  etmem::TracedModule module(argv[1], executorch::extension::Module::LoadMode::Mmap);
  if (module.load_method("forward") != executorch::runtime::Error::Ok) return 3;
  const auto meta = module.method_meta("forward");
  if (!meta.ok()) return 4;
  std::vector<executorch::extension::TensorPtr> tensors;
  std::vector<EValue> inputs;
  for (size_t i = 0; i < meta->num_inputs(); ++i) {
    const auto sizes = meta->input_tensor_meta(i)->sizes();
    tensors.push_back(executorch::extension::ones({sizes.begin(), sizes.end()}));
    inputs.emplace_back(tensors.back());
  }
  for (int i = 0; i < std::atoi(argv[2]); ++i) {
    if (!module.execute("forward", inputs).ok()) return 5;
  }
  return 0;
}
