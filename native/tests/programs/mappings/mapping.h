/* One behaviour of mappings a program. All sizes are multiples of UNIT, which nothing else in a small process is. */
#ifndef MAPPING_H_
#define MAPPING_H_
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define UNIT ((size_t)37 * 4096)
#define ACCESS (PROT_READ | PROT_WRITE)
#define PRIVATE (MAP_PRIVATE | MAP_ANONYMOUS)

/* Ends the process where what must work did not. */
static inline char* sure(void* p) {
  if (p == MAP_FAILED) exit(3);
  return p;
}

static inline char* map(size_t units) { return sure(mmap(NULL, units * UNIT, ACCESS, PRIVATE, -1, 0)); }

static inline char* touched(size_t units) {
  char* p = map(units);
  memset(p, 1, units * UNIT);
  return p;
}
#endif
