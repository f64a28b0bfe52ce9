// Two methods that load and run at the same time on two threads: MODEL METHOD OTHER_MODEL OTHER_METHOD ITERATIONS.
// One program with two methods where both models are the same file, else two programs.
#include <executorch/extension/module/module.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "ones.hpp"

using executorch::extension::Module;
using executorch::runtime::Error;

namespace {

// Both threads reach each step before either goes on: what they do between two steps overlaps.
class Meeting {
 public:
  void wait() {
    const int turn = arrived_.fetch_add(1) / 2;
    while (arrived_.load() < 2 * (turn + 1)) std::this_thread::yield();
  }

 private:
  std::atomic<int> arrived_{0};
};
Meeting meeting;

void run(Module& module, const std::string& method, int iterations) {
  meeting.wait();
  if (module.load_method(method) != Error::Ok) std::exit(4);
  meeting.wait();
  auto meta = module.method_meta(method);
  if (!meta.ok()) std::exit(5);
  const Ones inputs(*meta);
  for (int i = 0; i < iterations; ++i) {
    meeting.wait();
    if (!module.execute(method, inputs.values()).ok()) std::exit(6);
  }
  meeting.wait();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const std::string model = argv[1], other = argv[3];
  Module first(model, Module::LoadMode::Mmap);
  if (first.load() != Error::Ok) return 3;
  auto second = model == other ? std::make_unique<Module>(first.program())
                               : std::make_unique<Module>(other, Module::LoadMode::Mmap);
  if (second->load() != Error::Ok) return 3;
  const int iterations = std::atoi(argv[5]);
  std::thread one([&] { run(first, argv[2], iterations); });
  std::thread two([&] { run(*second, argv[4], iterations); });
  one.join();
  two.join();
}
