// What the C ABI and a wrapped allocator cost: nanoseconds of CPU time per call. MODE CALLS
//   empty      the loop alone
//   calls      a begin, an end, a heap's alloc and its free in each round: four calls
//   bare       executorch::runtime::MemoryAllocator::allocate of 64 bytes, reset when its 1 MiB is full
//   wrapped    the same through etmem::TracedMemoryAllocator
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "etmem/executorch.hpp"

namespace {

etmem_heap pool = ETMEM_HEAP("pool", "host", "other");
alignas(64) uint8_t memory[1 << 20];

double now() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

}  // namespace

// Named, so that callgrind counts inside of them alone.
extern "C" {

__attribute__((noinline)) void run_empty(long rounds) {
  for (long i = 0; i < rounds; ++i) __asm__ volatile("" : : "r"(i) : "memory");
}

__attribute__((noinline)) void run_calls(long rounds) {
  for (long i = 0; i < rounds; ++i) {
    const etmem_id scope = etmem_begin("work");
    etmem_heap_alloc(&pool, &memory[i & 1023], 8);
    etmem_heap_free(&pool, &memory[i & 1023]);
    etmem_end(scope);
    __asm__ volatile("" : : "r"(i) : "memory");
  }
}

__attribute__((noinline)) void run_allocator(executorch::runtime::MemoryAllocator* allocator, long calls) {
  constexpr long kRound = static_cast<long>(sizeof memory / 64);
  for (long i = 0; i < calls; ++i) {
    if (i % kRound == 0) allocator->reset();
    if (allocator->allocate(64) == nullptr) std::abort();
  }
}
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const long calls = std::atol(argv[2]);
  executorch::runtime::MemoryAllocator bare(sizeof memory, memory);
  etmem::TracedMemoryAllocator wrapped(&bare, "method_allocator");
  const bool with_allocator = std::strcmp(argv[1], "bare") == 0 || std::strcmp(argv[1], "wrapped") == 0;
  executorch::runtime::MemoryAllocator* allocator = &bare;
  if (std::strcmp(argv[1], "wrapped") == 0) allocator = &wrapped;
  std::memset(memory, 1, sizeof memory);
  const double start = now();
  if (with_allocator) {
    run_allocator(allocator, calls);
  } else if (std::strcmp(argv[1], "calls") == 0) {
    run_calls(calls / 4);
  } else {
    run_empty(calls / 4);
  }
  std::printf("%.3f\n", (now() - start) / static_cast<double>(calls));
  return 0;
}
