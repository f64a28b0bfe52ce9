/* etmem's C ABI: tell a running profiler what your memory is.
 *
 * One header, no library to link. Where etmem is absent every call is two loads and two branches; where it is
 * there, calls go through a table of functions that libetmem.so gives out under the name `etmem_api_v1`. Each client
 * module (a program or a shared library) keeps its own hidden pointer to it, because weak symbols do not reach
 * non-PIE programs, libraries that were loaded before the agent, or a module that was opened RTLD_LOCAL. The pointer
 * is filled on first use by `dlsym(RTLD_DEFAULT, "etmem_api_v1")`, or by the agent, which finds it by a note in the
 * module when it comes later than the module, or by etmem_set_api().
 *
 * @code
 *   static struct etmem_heap pool = ETMEM_HEAP("pool", "delegate:MyBackend", "workspace");
 *
 *   etmem_id tag = etmem_begin("packed_weights");   // what this thread allocates from here on is packed weights
 *   void* block = pool_take(bytes);
 *   etmem_heap_alloc(&pool, block, bytes);
 *   etmem_end(tag);
 * @endcode
 *
 * Before including it, define
 *   ETMEM_NO_DLSYM   where there is no dlsym: the table is then given by etmem_set_api(), or by the agent's own search
 *   ETMEM_DISABLE    to compile every call to nothing
 *
 * docs/reference/c-abi.md is generated from the comments that begin with two asterisks.
 */
#ifndef ETMEM_ETMEM_H_
#define ETMEM_ETMEM_H_

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if !defined(ETMEM_DISABLE) && !defined(__GNUC__)
#define ETMEM_DISABLE /* a hidden definition for each module needs GCC's or Clang's attributes */
#endif

#if defined(__GNUC__)
#define ETMEM_HIDDEN __attribute__((visibility("hidden")))
#define ETMEM_COLD __attribute__((noinline, cold, unused))
#define ETMEM_LOAD(place) __atomic_load_n(&(place), __ATOMIC_RELAXED)
#define ETMEM_STORE(place, value) __atomic_store_n(&(place), value, __ATOMIC_RELAXED)
#else
#define ETMEM_HIDDEN
#define ETMEM_COLD
#define ETMEM_LOAD(place) (place)
#define ETMEM_STORE(place, value) ((place) = (value))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** Names a string, a scope, a heap or a segment; 0 is none. Never reused in a process. */
typedef uint32_t etmem_id;

/** Kinds of scopes; the names are those of native/include/etmem/trace_format.h. Clients of this header open ETMEM_TAG.
 */
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
  ETMEM_RECORD_STACKS = 1,  /* allocations in this scope record their call stack */
  ETMEM_NOTICE_MODULES = 2, /* shared objects that appear in this scope are recorded with it */
  ETMEM_RECORD_FREES = 4    /* frees record their call stack too */
};

/** Where a heap's memory is. Memory that is not the host's never enters RSS, peaks or the balance; it has a table
 * of its own in every report. */
enum etmem_memory_kind {
  ETMEM_HOST_MEMORY = 0,
  ETMEM_GPU_MEMORY = 1,
  ETMEM_NPU_MEMORY = 2,
  ETMEM_DMA_BUF = 3,
  ETMEM_OTHER_DEVICE = 4
};

/** What a counter counts. */
enum etmem_unit { ETMEM_NUMBER = 0, ETMEM_BYTES = 1 };

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

/** The table of functions. Clients call the functions further down, which look whether the table has them.
 *
 * All functions are thread-safe, never allocate from malloc and may be called from a signal handler, where a call that
 * meets a lock held by its own thread is dropped and counted. Strings are UTF-8. Later versions only append: a client
 * that was compiled against a shorter table works with a longer one, and the other way round. */
struct etmem_api {
  uint32_t version; /* 1 */
  uint32_t bytes;   /* sizeof(struct etmem_api) of the agent */

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

  /* As heap_register, for a client's own heap: `key` tells one from another, and a second key of one name and owner is
   * wrong use, which is recorded and given the first one's id. 0 when not recording. */
  etmem_id (*heap_open)(const void* key, uint32_t kind, etmem_id name, etmem_id owner, etmem_id category);
  void (*counter)(etmem_id name, uint32_t unit, int64_t value);
  void (*label)(const void* address, size_t bytes, etmem_id name);
  /* 1 when the caller's own decorators trace ExecuTorch from now on, 0 when hooks stand in front of it already. */
  int (*take_runtime)(void);
};

/** A heap of yours: an allocator that hands out parts of blocks, or memory that only it knows. One object for each
 * heap, with its name, in static storage or in the allocator itself; initialise it with ETMEM_HEAP or
 * ETMEM_DEVICE_HEAP. It is registered when something is first reported of it, so it may exist long before a profiler
 * comes. The names must live as long as the heap. */
struct etmem_heap {
  const char* name;
  const char* owner;    /* "delegate:<BackendId>", "executorch" or "host"; NULL: whoever owns the block */
  const char* category; /* a category of docs/reference/summary.md; NULL: the block's, or metadata */
  uint32_t kind;        /* etmem_memory_kind */
  etmem_id id;          /* 0 until it is registered */
};

#define ETMEM_HEAP(name, owner, category) {name, owner, category, ETMEM_HOST_MEMORY, 0}
#define ETMEM_DEVICE_HEAP(kind, name, owner, category) {name, owner, category, kind, 0}

#if !defined(ETMEM_DISABLE)

/* One in each client module. */
struct etmem_client {
  const struct etmem_api* api;
  uint32_t looked; /* dlsym was asked */
  uint32_t reserved;
};
__attribute__((weak, used)) ETMEM_HIDDEN struct etmem_client etmem_client_v1;

/* Tells the agent where the pointer is, as an offset from the note itself, so it needs no relocation. */
#if defined(__ELF__) && (defined(__x86_64__) || defined(__aarch64__))
__asm__(
    ".pushsection .note.etmem,\"a\",%note\n"
    ".balign 4\n"
    ".long 6, 8, 1\n"
    ".asciz \"etmem\"\n"
    ".balign 4\n"
#if defined(__aarch64__)
    ".xword etmem_client_v1 - .\n"
#else
    ".quad etmem_client_v1 - .\n"
#endif
    ".popsection\n");
#endif

/* A weak reference that leaves strong ones of the same file strong: a static program without dlsym links, and one with
 * it keeps it. */
#if !defined(ETMEM_NO_DLSYM) && defined(__ELF__)
static void* etmem_dlsym_(void* handle, const char* symbol) __attribute__((weakref("dlsym")));
#define ETMEM_LOOK_UP(symbol) (etmem_dlsym_ != NULL ? etmem_dlsym_(NULL, symbol) : NULL)
#elif !defined(ETMEM_NO_DLSYM) && defined(__APPLE__)
extern void* etmem_dlsym_(void* handle, const char* symbol) __asm__("_dlsym");
#define ETMEM_LOOK_UP(symbol) etmem_dlsym_((void*)-2, symbol)
#else
#define ETMEM_LOOK_UP(symbol) NULL
#endif

ETMEM_COLD static const struct etmem_api* etmem_look_up_(void) {
  const struct etmem_api* found = (const struct etmem_api*)ETMEM_LOOK_UP("etmem_api_v1");
  ETMEM_STORE(etmem_client_v1.looked, 1u);
  if (found == NULL || found->version != 1) return NULL;
  __atomic_store_n(&etmem_client_v1.api, found, __ATOMIC_RELEASE);
  return found;
}

#endif /* ETMEM_DISABLE */

/** The table, or NULL where there is no profiler. Thread-safe. The first call in a module may ask dlsym, which is not
 * signal-safe: a module that reports from a signal handler calls this once before. */
static inline const struct etmem_api* etmem_get_api(void) {
#if defined(ETMEM_DISABLE)
  return NULL;
#else
  const struct etmem_api* api = __atomic_load_n(&etmem_client_v1.api, __ATOMIC_ACQUIRE);
  if (__builtin_expect(api != NULL, 0)) return api;
  if (__builtin_expect(ETMEM_LOAD(etmem_client_v1.looked) != 0, 1)) return NULL;
  return etmem_look_up_();
#endif
}

/** Gives this module its table, where there is no dlsym: of a recorder that is linked in, or handed in by a host.
 * Thread-safe and signal-safe.
 *
 * @param[in] api The table; NULL takes it away until the agent begins a recording, and dlsym is not asked again. */
static inline void etmem_set_api(const struct etmem_api* api) {
#if defined(ETMEM_DISABLE)
  (void)api;
#else
  ETMEM_STORE(etmem_client_v1.looked, 1u);
  __atomic_store_n(&etmem_client_v1.api, api, __ATOMIC_RELEASE);
#endif
}

/* Whether the table is long enough to hold a function that was appended. */
#define ETMEM_HAS(api, function) \
  ((api)->bytes >= offsetof(struct etmem_api, function) + sizeof((api)->function) && (api)->function != NULL)

/* The table while it records, or NULL. */
static inline const struct etmem_api* etmem_active_(void) {
  const struct etmem_api* api = etmem_get_api();
  return api != NULL && api->recording() ? api : NULL;
}

static inline etmem_id etmem_intern_(const struct etmem_api* api, const char* text) {
  return text == NULL ? 0 : api->string(text, strlen(text));
}

/** Whether this process is being recorded. Thread-safe and signal-safe. */
static inline int etmem_recording(void) { return etmem_active_() != NULL; }

/** Begins a scope: until etmem_end, what this thread allocates is filed under it. Scopes nest, per thread.
 * Thread-safe and signal-safe.
 *
 * @param[in] name     What the scope is called.
 * @param[in] category What is allocated in it ("packed_weights"); NULL: the name, if that is a category.
 * @returns The scope, or 0 when nothing is recorded. */
static inline etmem_id etmem_begin_tag(const char* name, const char* category) {
  const struct etmem_api* api = etmem_active_();
  if (api == NULL) return 0;
  return api->scope_begin(ETMEM_TAG, etmem_intern_(api, name), (int64_t)etmem_intern_(api, category), 0, 0);
}

/** etmem_begin_tag without a category of its own. Thread-safe and signal-safe. */
static inline etmem_id etmem_begin(const char* name) { return etmem_begin_tag(name, NULL); }

/** Ends a scope on the thread that began it. Ending one twice, on another thread, or around scopes that are still open
 * is an issue in the report and does nothing worse. etmem_end(0) does nothing. Thread-safe and signal-safe. */
static inline void etmem_end(etmem_id scope) {
  const struct etmem_api* api = scope == 0 ? NULL : etmem_get_api();
  if (api != NULL) api->scope_end(scope, 0);
}

ETMEM_COLD static etmem_id etmem_heap_open_(const struct etmem_api* api, struct etmem_heap* heap) {
  etmem_id id = 0;
  if (!api->recording()) return 0;
  if (ETMEM_HAS(api, heap_open)) {
    id = api->heap_open(heap, heap->kind, etmem_intern_(api, heap->name), etmem_intern_(api, heap->owner),
                        etmem_intern_(api, heap->category));
  } else if (heap->kind == ETMEM_HOST_MEMORY) { /* an older agent, which knows nothing of devices */
    id = api->heap_register(etmem_intern_(api, heap->name), etmem_intern_(api, heap->owner),
                            etmem_intern_(api, heap->category));
  }
  ETMEM_STORE(heap->id, id);
  return id;
}

/** Reports that a heap handed out memory. Thread-safe; signal-safe after the heap's first report.
 *
 * @param[in] heap    The heap.
 * @param[in] address Where it is; for device memory its address there, or any handle that is unique in the heap.
 * @param[in] bytes   What was asked for. */
static inline void etmem_heap_alloc(struct etmem_heap* heap, const void* address, size_t bytes) {
  const struct etmem_api* api = etmem_get_api();
  etmem_id id;
  if (api == NULL || address == NULL) return;
  id = ETMEM_LOAD(heap->id); /* the agent looks itself whether it records */
  if (id == 0) id = etmem_heap_open_(api, heap);
  if (id != 0) api->heap_alloc(id, address, bytes);
}

/** Reports that a heap took memory back; call it before the memory can be handed out again. A free of what was never
 * reported is an issue in the report. Thread-safe; signal-safe after the heap's first report. */
static inline void etmem_heap_free(struct etmem_heap* heap, const void* address) {
  const struct etmem_api* api = etmem_get_api();
  etmem_id id;
  if (api == NULL || address == NULL) return;
  id = ETMEM_LOAD(heap->id);
  if (id == 0) id = etmem_heap_open_(api, heap);
  if (id != 0) api->heap_free(id, address);
}

/** Reports that a heap took everything back at once. Thread-safe; signal-safe after the heap's first report. */
static inline void etmem_heap_reset(struct etmem_heap* heap) {
  const struct etmem_api* api = etmem_get_api();
  const etmem_id id = ETMEM_LOAD(heap->id);
  if (api != NULL && id != 0) api->heap_reset(id);
}

/** Records a value of a named time series. Thread-safe and signal-safe.
 *
 * @param[in] name  The series; one name has one unit.
 * @param[in] unit  etmem_unit.
 * @param[in] value Its value from now on. */
static inline void etmem_counter(const char* name, uint32_t unit, int64_t value) {
  const struct etmem_api* api = etmem_active_();
  if (api != NULL && ETMEM_HAS(api, counter)) api->counter(etmem_intern_(api, name), unit, value);
}

/** Names a region of memory: the report tells its block by that name. It changes neither owner nor category.
 * Thread-safe and signal-safe. */
static inline void etmem_label(const void* address, size_t bytes, const char* name) {
  const struct etmem_api* api = etmem_active_();
  if (api != NULL && address != NULL && ETMEM_HAS(api, label)) api->label(address, bytes, etmem_intern_(api, name));
}

/** Says whose the block is that holds [address, address + bytes), for its whole life, back to its allocation.
 * Thread-safe and signal-safe.
 *
 * @param[in] owner    "delegate:<BackendId>", "executorch" or "host".
 * @param[in] category A category of docs/reference/summary.md.
 * @param[in] name     What it is called; may be NULL. */
static inline void etmem_claim(const void* address, size_t bytes, const char* owner, const char* category,
                               const char* name) {
  const struct etmem_api* api = etmem_active_();
  if (api == NULL || address == NULL) return;
  api->claim(address, bytes, etmem_intern_(api, owner), etmem_intern_(api, category), etmem_intern_(api, name));
}

#ifdef __cplusplus
} /* extern "C" */

namespace etmem {

/** C++: a tag for a block. `etmem::Tag tag("packed_weights");` */
class Tag {
 public:
  explicit Tag(const char* name, const char* category = nullptr) : id_(etmem_begin_tag(name, category)) {}
  ~Tag() { etmem_end(id_); }
  Tag(const Tag&) = delete;
  Tag& operator=(const Tag&) = delete;

 private:
  etmem_id id_;
};

/** C++: a heap for as long as the object lives, which takes everything back when it ends. */
class Heap {
 public:
  explicit Heap(const char* name, const char* owner = nullptr, const char* category = nullptr,
                uint32_t kind = ETMEM_HOST_MEMORY)
      : heap_{name, owner, category, kind, 0} {}
  ~Heap() { etmem_heap_reset(&heap_); }
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  void alloc(const void* address, size_t bytes) { etmem_heap_alloc(&heap_, address, bytes); }
  void free(const void* address) { etmem_heap_free(&heap_, address); }
  void reset() { etmem_heap_reset(&heap_); }

 private:
  etmem_heap heap_;
};

}  // namespace etmem
#endif
#endif /* ETMEM_ETMEM_H_ */
