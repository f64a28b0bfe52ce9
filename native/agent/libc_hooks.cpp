/* The functions of libc that we stand in front of. Each calls the next definition, then records.
 *
 * A free is stamped before the call and an allocation after it: between the two another thread may be given
 * the same address, and one stamp for both could not be right.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <string.h>

#include "arena.h"
#include "bootstrap.h"
#include "etmem/etmem.h"
#include "next.h"
#include "recorder.h"
#include "scopes.h"
#include "system.h"

namespace etmem {
namespace {

using format::EventKind;
using recorder::event;
using recorder::wanted;

uint32_t stack_if_asked() { return ETMEM_UNLIKELY(t_state.scope_flags & ETMEM_RECORD_STACKS) ? recorder::stack() : 0; }

uint32_t free_stack_if_asked() {
  return ETMEM_UNLIKELY(t_state.scope_flags & ETMEM_RECORD_FREES) ? recorder::stack() : 0;
}

class InMalloc {
 public:
  InMalloc() { ++t_state.in_malloc; }
  ~InMalloc() { --t_state.in_malloc; }
};

inline void* allocated(void* block, size_t bytes, format::AllocFunction function) {
  if (block != nullptr && wanted()) event(format::kAlloc, function, block, bytes, stack_if_asked());
  return block;
}

/* The dynamic loader's code, which allocates through malloc like everybody. */
bool is_loader(const void* address) {
  static const char *start = nullptr, *end = nullptr;
  if (start == nullptr) {
    Busy busy;
    dl_iterate_phdr(
        [](dl_phdr_info* info, size_t, void*) {
          const char* slash = info->dlpi_name == nullptr ? nullptr : strrchr(info->dlpi_name, '/');
          if (slash == nullptr || strncmp(slash, "/ld-", 4) != 0) return 0;
          for (int i = 0; i < info->dlpi_phnum; ++i) {
            const ElfW(Phdr) & segment = info->dlpi_phdr[i];
            if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_X)) continue;
            start = reinterpret_cast<const char*>(info->dlpi_addr + segment.p_vaddr);
            end = start + segment.p_memsz;
          }
          return 1;
        },
        nullptr);
    if (start == nullptr) start = end = reinterpret_cast<const char*>(1);
  }
  return address >= start && address < end;
}

/* As `allocated`, for what a thread without a scope of its own may have asked of the loader. */
inline void* allocated_for(const void* caller, void* block, size_t bytes, format::AllocFunction function) {
  const bool storage =
      ETMEM_UNLIKELY(t_state.started && t_state.scope == 0) && block != nullptr && wanted() && is_loader(caller);
  if (!storage) return allocated(block, bytes, function);
  uint32_t scope;
  {
    Busy busy;
    scope = scopes::thread_storage();
  }
  t_state.scope = scope;
  event(format::kAlloc, function, block, bytes);
  t_state.scope = 0;
  return block;
}

inline void freed(void* block) {
  if (block != nullptr && wanted()) event(format::kFree, 0, block, 0, free_stack_if_asked());
}

inline void undone(const void* block) {
  if (block != nullptr && wanted()) event(format::kUndo, 0, block, 0);
}

template <typename Call>
inline void* reallocated(void* block, size_t bytes, format::AllocFunction function, Call call) {
  if (bootstrap::owns(block)) {
    void* fresh = next::call.malloc(bytes);
    if (fresh != nullptr) memcpy(fresh, block, bootstrap::at_most(block, bytes));
    return allocated(fresh, bytes, function);
  }
  freed(block);
  void* fresh;
  {
    InMalloc inside;
    fresh = call();
  }
  if (fresh != nullptr) return allocated(fresh, bytes, function);
  if (bytes != 0) undone(block);  // realloc(p, 0) freed it
  return nullptr;
}

uint64_t page_up(uint64_t bytes) {
  static const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) & ~(page - 1);
}

void mapped(void* address, size_t bytes, int protection, int flags, int fd, off_t offset) {
  uint8_t kinds = 0;
  if (!(flags & MAP_ANONYMOUS)) kinds |= format::kMapFile;
  if (protection == PROT_NONE) kinds |= format::kMapReserved;
  if ((flags & MAP_TYPE) != MAP_PRIVATE) kinds |= format::kMapShared;
  if (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) kinds |= format::kMapFixed;
  if (t_state.in_malloc) kinds |= format::kMapNested;
  const uint64_t stamp = trace_file::next_stamp();
  if (kinds & format::kMapFile) {
    Busy busy;
    char link[64] = "/proc/self/fd/";
    char digits[16];
    size_t n = 0;
    for (unsigned value = static_cast<unsigned>(fd); n == 0 || value != 0; value /= 10) {
      digits[n++] = static_cast<char>('0' + value % 10);
    }
    char* out = link + strlen(link);
    while (n > 0) *out++ = digits[--n];
    char path[4096];
    const ssize_t length = readlink(link, path, sizeof path);
    const format::MetaFileMap entry = {reinterpret_cast<uint64_t>(address), bytes, static_cast<uint64_t>(offset),
                                       length > 0 ? recorder::string(path, static_cast<size_t>(length)) : 0,
                                       t_state.tid};
    recorder::meta(format::kMetaFileMap, entry, nullptr, 0, stamp);
  }
  recorder::write(stamp, format::kMap, kinds, address, page_up(bytes), stack_if_asked());
}

struct Start {
  void* (*routine)(void*);
  void* argument;
  uint32_t parent;
  uint32_t scope;
  Start* next;
};

SpinLock start_lock;
Start* free_starts;

Start* new_start() {
  {
    Guard guard(start_lock);
    if (free_starts != nullptr) {
      Start* start = free_starts;
      free_starts = start->next;
      return start;
    }
  }
  return arena::allocate_array<Start>(1);
}

void* run_thread(void* packed) {
  Start* start = static_cast<Start*>(packed);
  const Start copy = *start;
  {
    Busy busy;
    {
      Guard guard(start_lock);
      start->next = free_starts;
      free_starts = start;
    }
    t_state.started = 1;
    if (recording()) {
      recorder::enter_thread(copy.parent, copy.scope, reinterpret_cast<uint64_t>(copy.routine), false);
    }
  }
  void* result = copy.routine(copy.argument);
  {
    Busy busy;
    recorder::leave_thread();
  }
  return result;
}

}  // namespace
}  // namespace etmem

using namespace etmem;  // NOLINT: the definitions below must be global

extern "C" {

ETMEM_EXPORT void* malloc(size_t bytes) {
  void* block;
  {
    InMalloc inside;
    block = next::call.malloc(bytes);
  }
  return allocated_for(__builtin_return_address(0), block, bytes, format::kMalloc);
}

ETMEM_EXPORT void* calloc(size_t count, size_t bytes) {
  void* block;
  {
    InMalloc inside;
    block = next::call.calloc(count, bytes);
  }
  return allocated_for(__builtin_return_address(0), block, count * bytes,
                       format::kCalloc);  // did not overflow, or it would be null
}

ETMEM_EXPORT void* realloc(void* block, size_t bytes) {
  return reallocated(block, bytes, format::kRealloc, [&] { return next::call.realloc(block, bytes); });
}

ETMEM_EXPORT void* reallocarray(void* block, size_t count, size_t bytes) {
  size_t total;
  if (__builtin_mul_overflow(count, bytes, &total)) {
    errno = ENOMEM;
    return nullptr;
  }
  return reallocated(block, total, format::kReallocarray, [&] { return next::call.realloc(block, total); });
}

ETMEM_EXPORT void free(void* block) {
  if (bootstrap::owns(block)) return;
  freed(block);
  InMalloc inside;
  next::call.free(block);
}

ETMEM_EXPORT void free_sized(void* block, size_t) { free(block); }
ETMEM_EXPORT void free_aligned_sized(void* block, size_t, size_t) { free(block); }

ETMEM_EXPORT int posix_memalign(void** block, size_t alignment, size_t bytes) {
  int error;
  {
    InMalloc inside;
    error = next::call.posix_memalign(block, alignment, bytes);
  }
  if (error == 0) allocated(*block, bytes, format::kPosixMemalign);
  return error;
}

ETMEM_EXPORT void* aligned_alloc(size_t alignment, size_t bytes) {
  void* block;
  {
    InMalloc inside;
    block = next::call.aligned_alloc(alignment, bytes);
  }
  return allocated(block, bytes, format::kAlignedAlloc);
}

ETMEM_EXPORT void* memalign(size_t alignment, size_t bytes) {
  void* block;
  {
    InMalloc inside;
    block = next::call.memalign(alignment, bytes);
  }
  return allocated(block, bytes, format::kMemalign);
}

ETMEM_EXPORT void* valloc(size_t bytes) {
  void* block;
  {
    InMalloc inside;
    block = next::call.valloc(bytes);
  }
  return allocated(block, bytes, format::kValloc);
}

ETMEM_EXPORT void* pvalloc(size_t bytes) {
  void* block;
  {
    InMalloc inside;
    block = next::call.pvalloc(bytes);
  }
  return allocated(block, page_up(bytes), format::kPvalloc);
}

ETMEM_EXPORT void* mmap(void* hint, size_t bytes, int protection, int flags, int fd, off_t offset) {
  void* address = next::call.mmap(hint, bytes, protection, flags, fd, offset);
  if (address != MAP_FAILED && wanted()) mapped(address, bytes, protection, flags, fd, offset);
  return address;
}

ETMEM_EXPORT void* mmap64(void* hint, size_t bytes, int protection, int flags, int fd, off64_t offset) {
  return mmap(hint, bytes, protection, flags, fd, offset);
}

ETMEM_EXPORT int munmap(void* address, size_t bytes) {
  const bool record = wanted();
  if (record) event(format::kUnmap, 0, address, page_up(bytes));
  const int result = next::call.munmap(address, bytes);
  if (result != 0 && record) undone(address);
  return result;
}

ETMEM_EXPORT void* mremap(void* old_address, size_t old_bytes, size_t bytes, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  void* wish = flags & MREMAP_FIXED ? va_arg(rest, void*) : nullptr;
  va_end(rest);
  const bool record = wanted();
  /* old_bytes 0 makes a second mapping of shared pages: nothing is unmapped */
  if (record && old_bytes != 0) event(format::kUnmap, 0, old_address, page_up(old_bytes));
  void* address = next::call.mremap(old_address, old_bytes, bytes, flags, wish);
  if (!record) return address;
  if (address == MAP_FAILED) {
    if (old_bytes != 0) undone(old_address);
  } else {
    const uint8_t fixed = flags & MREMAP_FIXED ? format::kMapFixed : 0;
    event(format::kMap, static_cast<uint8_t>(format::kMapMoved | fixed), address, page_up(bytes), stack_if_asked());
  }
  return address;
}

ETMEM_EXPORT int madvise(void* address, size_t bytes, int advice) {
  const int result = next::call.madvise(address, bytes, advice);
  if (result == 0 && (advice == MADV_DONTNEED || advice == MADV_FREE) && wanted()) {
    event(format::kAdvise, advice == MADV_FREE, address, page_up(bytes));
  }
  return result;
}

ETMEM_EXPORT int mprotect(void* address, size_t bytes, int protection) {
  const int result = next::call.mprotect(address, bytes, protection);
  if (result == 0 && wanted()) event(format::kProtect, protection == PROT_NONE, address, page_up(bytes));
  return result;
}

ETMEM_EXPORT void* sbrk(intptr_t step) {
  void* before = next::call.sbrk(step);
  if (before != reinterpret_cast<void*>(-1) && step != 0 && !t_state.in_malloc && wanted()) {
    event(format::kBreak, 0, static_cast<char*>(before) + step, static_cast<uint64_t>(step));
  }
  return before;
}

ETMEM_EXPORT int brk(void* address) {
  char* before = static_cast<char*>(next::call.sbrk(0));
  const int result = next::call.brk(address);
  if (result == 0 && !t_state.in_malloc && wanted()) {
    event(format::kBreak, 0, address, static_cast<uint64_t>(static_cast<char*>(address) - before));
  }
  return result;
}

ETMEM_EXPORT int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*routine)(void*),
                                void* argument) {
  if (!recording()) return next::call.pthread_create(thread, attributes, routine, argument);
  Start* start = nullptr;
  {
    Busy busy;
    start = new_start();
  }
  if (start == nullptr) return next::call.pthread_create(thread, attributes, routine, argument);
  *start = {routine, argument, t_state.tid, t_state.scope, nullptr};
  return next::call.pthread_create(thread, attributes, run_thread, start);
}

}  // extern "C"
