// The same in C++: tags and heaps that end with their block.
//
//   c++ -std=c++17 -I"$(python -c 'import etmem.capture.build as b; print(b.include_folder())')" pool.cpp -o pool
//   etmem run -- ./pool
#include <cstdio>
#include <memory>
#include <vector>

#include "etmem/etmem.h"

namespace {

class Pool {
 public:
  explicit Pool(size_t bytes) : memory_(new char[bytes]) {}

  void* take(size_t bytes) {
    void* block = memory_.get() + used_;
    used_ += bytes;
    heap_.alloc(block, bytes);
    return block;
  }
  void clear() {
    heap_.reset();
    used_ = 0;
  }

 private:
  std::unique_ptr<char[]> memory_;
  size_t used_ = 0;
  etmem::Heap heap_{"example pool", "delegate:Example", "workspace"};
};

}  // namespace

int main() {
  Pool pool(1 << 20);
  {
    etmem::Tag tag("packed_weights");
    pool.take(600'000);
    std::vector<float> table(1000);  // what malloc gives is tagged too
    etmem_label(table.data(), table.size() * sizeof(float), "lookup table");
  }
  for (int i = 0; i < 3; ++i) pool.take(100'000);
  pool.clear();
  std::printf("recorded: %s\n", etmem_recording() ? "yes" : "no");
}
