/* Hands every block of malloc's family to the recorder of etmem/recorder.hpp, in a program that is linked with
 * `-Wl,--wrap=malloc` and so on: the target etmem::wrap_malloc of native/cmake compiles this once and does that.
 *
 * What is linked statically is followed, C++'s operators among it; a shared library calls its own malloc unseen.
 */
#ifndef ETMEM_WRAP_MALLOC_HPP_
#define ETMEM_WRAP_MALLOC_HPP_

#include <stddef.h>

#include "etmem/recorder.hpp"

extern "C" {

void* __real_malloc(size_t bytes);
void* __real_calloc(size_t count, size_t bytes);
void* __real_realloc(void* block, size_t bytes);
void __real_free(void* block);
int __real_posix_memalign(void** block, size_t alignment, size_t bytes);
void* __real_aligned_alloc(size_t alignment, size_t bytes);
void* __real_memalign(size_t alignment, size_t bytes);

void* __wrap_malloc(size_t bytes) { return etmem::Recorder::made(__real_malloc(bytes), bytes); }
void* __wrap_calloc(size_t count, size_t bytes) {
  return etmem::Recorder::made(__real_calloc(count, bytes), count * bytes);
}
void* __wrap_realloc(void* block, size_t bytes) {
  etmem::Recorder::ends(block);
  void* grown = __real_realloc(block, bytes);
  if (grown == nullptr && bytes != 0) {
    etmem::Recorder::did_not_end(block);
    return nullptr;
  }
  return etmem::Recorder::made(grown, bytes);
}
void __wrap_free(void* block) {
  etmem::Recorder::ends(block);
  __real_free(block);
}
int __wrap_posix_memalign(void** block, size_t alignment, size_t bytes) {
  const int error = __real_posix_memalign(block, alignment, bytes);
  if (error == 0) etmem::Recorder::made(*block, bytes);
  return error;
}
void* __wrap_aligned_alloc(size_t alignment, size_t bytes) {
  return etmem::Recorder::made(__real_aligned_alloc(alignment, bytes), bytes);
}
void* __wrap_memalign(size_t alignment, size_t bytes) {
  return etmem::Recorder::made(__real_memalign(alignment, bytes), bytes);
}

}  // extern "C"

#endif  // ETMEM_WRAP_MALLOC_HPP_
