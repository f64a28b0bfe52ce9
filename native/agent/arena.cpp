#include "arena.h"

#include "state.h"
#include "system.h"

namespace etmem::arena {
namespace {

constexpr size_t kStep = 256 * 1024;
constexpr size_t kMaxMappings = 256;

struct Mapping {
  uint64_t address;
  uint64_t bytes;
};

SpinLock lock;
char* cursor;
size_t left;
uint64_t mapped;
Mapping mappings[kMaxMappings];
size_t mapping_count;
size_t visited;

}  // namespace

void* allocate(size_t bytes) {
  bytes = (bytes + 15) & ~size_t{15};
  Guard guard(lock);
  if (bytes > left) {
    const size_t step = bytes > kStep / 4 ? (bytes + 4095) & ~size_t{4095} : kStep;
    char* fresh = static_cast<char*>(sys::map_private(step));
    if (fresh == nullptr) return nullptr;
    mapped += step;
    if (mapping_count < kMaxMappings) mappings[mapping_count++] = {reinterpret_cast<uint64_t>(fresh), step};
    if (bytes > kStep / 4) return fresh;
    cursor = fresh;
    left = step;
  }
  void* result = cursor;
  cursor += bytes;
  left -= bytes;
  return result;
}

uint64_t mapped_bytes() { return mapped; }

void visit_new(void (*visit)(uint64_t, uint64_t)) {
  for (;;) {
    Mapping next;
    {
      Guard guard(lock);
      if (visited == mapping_count) return;
      next = mappings[visited++];
    }
    visit(next.address, next.bytes);
  }
}

void visit_again() {
  Guard guard(lock);
  visited = 0;
}

}  // namespace etmem::arena
