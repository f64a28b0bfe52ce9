/* malloc and free in pairs, a thousand live at a time, sizes 16 to 1039: prints nanoseconds per pair. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { kLive = 1000 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(int argc, char** argv) {
  const long pairs = argc > 1 ? atol(argv[1]) : 1000000;
  static void* volatile live[kLive];
  uint32_t random = 12345;
  double start = now();
  for (long i = 0; i < pairs; ++i) {
    random = random * 1664525u + 1013904223u;
    const uint32_t slot = (random >> 8) % kLive;
    free(live[slot]);
    live[slot] = malloc(16 + (random >> 10 & 1023));
  }
  printf("%.2f\n", (now() - start) / (double)pairs);
  return 0;
}
