/* Helpers of the process programs: allocations that a test tells apart by their size. */
#ifndef ALLOCATE_H_
#define ALLOCATE_H_
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void* volatile sink;

/* `count` blocks of `bytes`, each freed at once. */
static inline void allocate(int count, size_t bytes) {
  for (int i = 0; i < count; ++i) {
    sink = malloc(bytes);
    free(sink);
  }
}
#endif
