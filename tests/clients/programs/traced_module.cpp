// An application of one's own: loads a program and runs forward a few times. MODEL ITERATIONS
#include <cstdlib>

#include "etmem/module.hpp"
#include "ones.hpp"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  etmem::TracedModule module(argv[1], executorch::extension::Module::LoadMode::Mmap);
  if (module.load_method("forward") != executorch::runtime::Error::Ok) return 3;
  const auto meta = module.method_meta("forward");
  if (!meta.ok()) return 4;
  const Ones inputs(*meta);
  for (int i = 0; i < std::atoi(argv[2]); ++i) {
    if (!module.execute("forward", inputs.values()).ok()) return 5;
  }
  return 0;
}
