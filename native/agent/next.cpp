#include "next.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "bootstrap.h"
#include "state.h"

namespace etmem {
namespace bootstrap {

alignas(16) char arena[kBytes];

namespace {
size_t used;
}  // namespace

void* allocate(size_t bytes) {
  bytes = (bytes + 15) & ~size_t{15};
  const size_t at = __atomic_fetch_add(&used, bytes, __ATOMIC_RELAXED);
  return at + bytes <= kBytes && bytes <= kBytes ? arena + at : nullptr;
}

size_t at_most(const void* block, size_t bytes) {
  const size_t left = static_cast<size_t>(arena + kBytes - static_cast<const char*>(block));
  return bytes < left ? bytes : left;
}

}  // namespace bootstrap

namespace next {
namespace {

bool resolving;

/* The first call of any of them finds all; a call that dlsym makes meanwhile is served by the arena. */
#define ETMEM_FIRST(name, otherwise, ...) \
  do {                                    \
    if (!resolving) {                     \
      resolve();                          \
      return call.name(__VA_ARGS__);      \
    }                                     \
    return otherwise;                     \
  } while (0)

void* aligned(size_t alignment, size_t bytes) {
  char* block = static_cast<char*>(bootstrap::allocate(bytes + alignment));
  if (block == nullptr) return nullptr;
  const uintptr_t at = reinterpret_cast<uintptr_t>(block);
  return reinterpret_cast<void*>((at + alignment - 1) & ~(alignment - 1));
}

void* first_malloc(size_t bytes) { ETMEM_FIRST(malloc, bootstrap::allocate(bytes), bytes); }
void* first_calloc(size_t count, size_t bytes) {
  ETMEM_FIRST(calloc, bootstrap::allocate(count * bytes), count, bytes);
}
void* first_realloc(void* block, size_t bytes) { ETMEM_FIRST(realloc, bootstrap::allocate(bytes), block, bytes); }
void* first_reallocarray(void* block, size_t count, size_t bytes) {
  ETMEM_FIRST(reallocarray, bootstrap::allocate(count * bytes), block, count, bytes);
}
void first_free(void* block) {
  if (resolving) return;
  resolve();
  call.free(block);
}
void first_free_sized(void*, size_t) {}
void first_free_aligned_sized(void*, size_t, size_t) {}
int first_posix_memalign(void** block, size_t alignment, size_t bytes) {
  if (!resolving) {
    resolve();
    return call.posix_memalign(block, alignment, bytes);
  }
  *block = aligned(alignment, bytes);
  return *block == nullptr ? ENOMEM : 0;
}
void* first_aligned_alloc(size_t a, size_t bytes) { ETMEM_FIRST(aligned_alloc, aligned(a, bytes), a, bytes); }
void* first_memalign(size_t a, size_t bytes) { ETMEM_FIRST(memalign, aligned(a, bytes), a, bytes); }
void* first_valloc(size_t bytes) { ETMEM_FIRST(valloc, aligned(4096, bytes), bytes); }
void* first_pvalloc(size_t bytes) { ETMEM_FIRST(pvalloc, aligned(4096, bytes), bytes); }
void* first_mmap(void* hint, size_t bytes, int protection, int flags, int fd, off_t offset) {
  ETMEM_FIRST(mmap, MAP_FAILED, hint, bytes, protection, flags, fd, offset);
}
void* first_mmap64(void* hint, size_t bytes, int protection, int flags, int fd, off64_t offset) {
  ETMEM_FIRST(mmap64, MAP_FAILED, hint, bytes, protection, flags, fd, offset);
}
int first_munmap(void* address, size_t bytes) { ETMEM_FIRST(munmap, -1, address, bytes); }
void* first_mremap(void* address, size_t old_bytes, size_t bytes, int flags, ...) {
  ETMEM_FIRST(mremap, MAP_FAILED, address, old_bytes, bytes, flags);
}
int first_madvise(void* address, size_t bytes, int advice) noexcept {
  ETMEM_FIRST(madvise, -1, address, bytes, advice);
}
int first_mprotect(void* address, size_t bytes, int protection) noexcept {
  ETMEM_FIRST(mprotect, -1, address, bytes, protection);
}
int first_brk(void* address) noexcept { ETMEM_FIRST(brk, -1, address); }
void* first_sbrk(intptr_t step) noexcept { ETMEM_FIRST(sbrk, reinterpret_cast<void*>(-1), step); }
int first_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*routine)(void*), void* argument) {
  ETMEM_FIRST(pthread_create, EAGAIN, thread, attributes, routine, argument);
}

}  // namespace

#define ETMEM_LIBC(name) reinterpret_cast<decltype(&::name)>(first_##name),
Functions call = {
#include "hooks.def"
};

namespace {

void resolve_from(void* where) {
  if (resolving) return;
  resolving = true;
  /* All at once: another malloc that dlsym enters before mmap is known would be refused its first pages. */
  Functions all = call;
#define ETMEM_LIBC(name)                                    \
  if (void* found = dlsym(where, #name)) {                  \
    all.name = reinterpret_cast<decltype(all.name)>(found); \
  }
#include "hooks.def"
  call = all;
  resolving = false;
}

}  // namespace

void resolve() { resolve_from(RTLD_NEXT); }
void resolve_default() { resolve_from(RTLD_DEFAULT); }

}  // namespace next
}  // namespace etmem
