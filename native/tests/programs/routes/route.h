/* One allocation route a program. Each allocates SIZE bytes, touches them, and where it can gives them back.
 *
 * `keep` is volatile so that no compiler removes the pair. What no hook sees is kept forever: it must show in the
 * balance's unaccounted line of the snapshot at the end.
 */
#ifndef ROUTE_H_
#define ROUTE_H_
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SIZE = 3 * 1024 * 1024 + 4096 };

static void* volatile kept;

static inline void* keep(void* p) {
  memset(p, 1, SIZE - 100);
  kept = p;
  return p;
}

static inline void keep_forever(void* p) { keep(p); }

void route(void);

int main(void) {
  route();
  return 0;
}
#endif
