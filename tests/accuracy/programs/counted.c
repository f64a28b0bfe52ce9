/* Preloaded beside (or without) etmem: counts the process's calls to allocate, and large aligned ones by size.
 * counted() and counted_workspaces() give the counts so far. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static atomic_long calls;
static atomic_long workspaces;
static _Thread_local int resolving;

/* dlsym allocates on its first call in a thread. */
static char early[1 << 16];
static atomic_size_t early_used;

static void* from_early(size_t bytes) {
  size_t start = atomic_fetch_add(&early_used, (bytes + 15) & ~(size_t)15);
  return start + bytes <= sizeof early ? early + start : NULL;
}

static void* next(const char* name, void** slot) {
  if (!*slot) {
    resolving = 1;
    *slot = dlsym(RTLD_NEXT, name);
    resolving = 0;
  }
  return *slot;
}

long counted(void) { return atomic_load(&calls); }
long counted_workspaces(void) { return atomic_load(&workspaces); }

void* malloc(size_t bytes) {
  static void* slot;
  if (resolving) return from_early(bytes);
  atomic_fetch_add(&calls, 1);
  return ((void* (*)(size_t))next("malloc", &slot))(bytes);
}

void* calloc(size_t count, size_t bytes) {
  static void* slot;
  if (resolving) return from_early(count * bytes);
  atomic_fetch_add(&calls, 1);
  return ((void* (*)(size_t, size_t))next("calloc", &slot))(count, bytes);
}

void* realloc(void* block, size_t bytes) {
  static void* slot;
  atomic_fetch_add(&calls, 1);
  return ((void* (*)(void*, size_t))next("realloc", &slot))(block, bytes);
}

int posix_memalign(void** block, size_t alignment, size_t bytes) {
  static void* slot;
  atomic_fetch_add(&calls, 1);
  if (bytes == 16777248) atomic_fetch_add(&workspaces, 1);
  return ((int (*)(void**, size_t, size_t))next("posix_memalign", &slot))(block, alignment, bytes);
}

void free(void* block) {
  static void* slot;
  if ((uintptr_t)block - (uintptr_t)early < sizeof early) return;
  ((void (*)(void*))next("free", &slot))(block);
}
