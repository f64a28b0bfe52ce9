/* etmem's C ABI: tell a running profiler what your memory is. No dependency: where etmem is absent,
 * every call is one load and one branch.
 *
 * A program reaches the profiler through a table of functions that libetmem.so gives out under the name
 * `etmem_api_v1`. Each client module keeps its own hidden pointer to it: weak symbols do not reach
 * non-PIE programs, libraries loaded before the agent, or a module opened RTLD_LOCAL.
 */
#ifndef ETMEM_ETMEM_H_
#define ETMEM_ETMEM_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint32_t etmem_id;

/* Kinds of scopes; the names are those of native/agent/trace_format.h. */
enum etmem_scope_kind {
  ETMEM_PROGRAM_LOAD = 1,
  ETMEM_METHOD_LOAD = 2,
  ETMEM_INFERENCE = 3,
  ETMEM_UNLOAD = 4,
  ETMEM_DELEGATE = 5,
  ETMEM_INSTRUCTION = 6,
  ETMEM_TAG = 7,
  ETMEM_PROFILER = 8
};

enum etmem_scope_flags {
  ETMEM_RECORD_STACKS = 1, /* allocations in this scope record their call stack */
  ETMEM_NOTICE_MODULES = 2 /* shared objects that appear in this scope are recorded with it */
};

/* One loaded piece of a program file; see MetaSegment. */
struct etmem_segment {
  const void* address;
  uint64_t bytes;
  uint64_t offset;
  uint32_t type;
  uint32_t index;
  etmem_id name;
  uint32_t program;
};

/* All functions are thread-safe, never allocate from malloc and may be called from a signal handler,
 * where a call that meets a lock held by its own thread is dropped and counted. Ids are never reused. */
struct etmem_api {
  uint32_t version; /* 1 */
  uint32_t bytes;   /* sizeof(struct etmem_api) of the agent; later versions only append */

  int (*recording)(void); /* 1 while events of this process are recorded */

  etmem_id (*string)(const char* text, size_t length); /* interns; 0 for the empty string or when full */

  /* Scopes nest per thread. begin returns 0 when not recording; end(0) does nothing. */
  etmem_id (*scope_begin)(uint32_t kind, etmem_id name, int64_t a, int64_t b, uint32_t flags);
  void (*scope_end)(etmem_id scope, int failed);

  /* [address, address+bytes) belongs to owner/category, back to its allocation. */
  void (*claim)(const void* address, size_t bytes, etmem_id owner, etmem_id category, etmem_id name);

  /* A heap that hands out parts of blocks. */
  etmem_id (*heap_register)(etmem_id name, etmem_id owner, etmem_id category);
  void (*heap_alloc)(etmem_id heap, const void* address, size_t bytes);
  void (*heap_free)(etmem_id heap, const void* address);
  void (*heap_reset)(etmem_id heap);

  etmem_id (*segment)(const struct etmem_segment* segment); /* 0 when not recording */
  void (*segment_free)(etmem_id segment);

  void (*note)(etmem_id key, etmem_id value);
  void (*snapshot)(etmem_id name, etmem_id scope); /* RSS, maps and resident pages after a phase: 1 ms */
  /* The caller will run a method n more times; remaining() counts down at each end of an inference and
   * is 1 when the one that ends is the last. 0 when nothing was announced. */
  void (*expect_inferences)(uint64_t n);
  uint64_t (*remaining_inferences)(void);

  void* (*allocate)(size_t bytes); /* the profiler's own memory, 16-byte aligned, never freed */

  /* A number for a program that is about to be loaded: one process may hold several ExecuTorchs, whose hooks know
   * nothing of each other. */
  uint32_t (*next_program)(void);
};

#if defined(__GNUC__)
#define ETMEM_HIDDEN __attribute__((visibility("hidden")))
#else
#define ETMEM_HIDDEN
#endif

#ifdef __cplusplus
}
#endif
#endif /* ETMEM_ETMEM_H_ */
