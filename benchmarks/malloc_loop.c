/* malloc and free in pairs, a thousand live at a time, sizes 16 to 1039, ten calls deep: prints nanoseconds of
 * CPU time per pair.
 * PAIRS [scope]: inside an inference, where etmem records call stacks if it is asked to. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "etmem/etmem.h"

enum { kLive = 1000, kDepth = 10 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double pairs_at(int depth, long pairs);
static double (*volatile next)(int depth, long pairs) = pairs_at; /* no tail call, nothing inlined */

static double pairs_at(int depth, long pairs) {
  if (depth < kDepth) {
    double found = next(depth + 1, pairs);
    __asm__ volatile("");
    return found;
  }
  static void* volatile live[kLive];
  uint32_t random = 12345;
  double start = now();
  for (long i = 0; i < pairs; ++i) {
    random = random * 1664525u + 1013904223u;
    const uint32_t slot = (random >> 8) % kLive;
    free(live[slot]);
    live[slot] = malloc(16 + (random >> 10 & 1023));
  }
  return (now() - start) / (double)pairs;
}

/* For a profiler of Python, which loads this as a library, and for callgrind, which counts inside of it. */
__attribute__((noinline)) double run_pairs(long pairs) {
  double found = next(0, pairs);
  __asm__ volatile("");
  return found;
}

int main(int argc, char** argv) {
  const long pairs = argc > 1 ? atol(argv[1]) : 1000000;
  const struct etmem_api* api = argc > 2 ? (const struct etmem_api*)dlsym(RTLD_DEFAULT, "etmem_api_v1") : NULL;
  etmem_id scope = api ? api->scope_begin(ETMEM_INFERENCE, api->string("loop", 4), 1, 0, 0) : 0;
  double found = run_pairs(pairs);
  if (api) api->scope_end(scope, 0);
  printf("%.2f\n", found);
  return 0;
}
