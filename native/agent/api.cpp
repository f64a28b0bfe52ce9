#include "api.h"

#include "arena.h"
#include "attach.h"
#include "observe.h"
#include "recorder.h"
#include "recording.h"
#include "scopes.h"
#include "stubs.h"
#include "system.h"

namespace etmem {
namespace {

/* Clients keep heap ids for the process's life, over several traces. */
struct HeapEntry {
  format::MetaHeap record;
  const void* key;  // of the client that opened it
  HeapEntry* next;
};
SpinLock heap_lock;
HeapEntry* heap_list;
uint32_t heaps;
uint32_t segments;
uint32_t older_segments;  // of earlier traces: their end is nothing to this one
uint64_t expected;
bool last_seen;  // of the inferences that were expected
uint32_t programs;

int is_recording() { return recording(); }

etmem_id scope_begin(uint32_t kind, etmem_id name, int64_t a, int64_t b, uint32_t flags) {
  return scopes::begin(kind, name, a, b, flags);
}

void scope_end(etmem_id scope, int failed) { scopes::end(scope, failed != 0); }

/* Enters the agent; false when the call is to be dropped. */
class Entry : public Busy {
 public:
  explicit operator bool() const {
    if (!recording()) return false;
    if (!entered) trace_file::count_drop();
    return entered;
  }
};

etmem_id string(const char* text, size_t length) {
  Entry entry;
  return entry ? recorder::string(text, length) : 0;
}

constexpr uint64_t kMaxBytes = (uint64_t{1} << 48) - 1;

__attribute__((noinline, cold)) bool out_of_range(etmem_id what) {
  if (Entry entry; entry) recorder::misuse(format::kMisuseRange, what);
  return false;
}

/* A range that no memory has would make the trace unreadable: the call is recorded as misuse instead. */
inline bool is_range(const void* address, size_t bytes, etmem_id what) {
  const uint64_t start = reinterpret_cast<uint64_t>(address);
  return ETMEM_LIKELY(bytes <= kMaxBytes && start + bytes >= start) || out_of_range(what);
}

void claim(const void* address, size_t bytes, etmem_id owner, etmem_id category, etmem_id name) {
  if (!is_range(address, bytes, name)) return;
  if (Entry entry; entry) {
    const format::MetaClaim record = {reinterpret_cast<uint64_t>(address), bytes, owner, category, name, t_state.scope};
    recorder::meta(format::kMetaClaim, record);
  }
}

/* With `heap_lock` held. */
bool keep_heap(const format::MetaHeap& record, const void* key) {
  HeapEntry* kept = arena::allocate_array<HeapEntry>(1);
  if (kept == nullptr) return false;
  *kept = {record, key, heap_list};
  heap_list = kept;
  return true;
}

etmem_id heap_register(etmem_id name, etmem_id owner, etmem_id category) {
  const uint32_t id = __atomic_add_fetch(&heaps, 1, __ATOMIC_RELAXED);
  Entry entry;
  if (!entry) return id;
  const format::MetaHeap record = {id, name, owner, category, t_state.scope, format::kHostMemory};
  {
    Guard guard(heap_lock);
    keep_heap(record, nullptr);
  }
  recorder::meta(format::kMetaHeap, record);
  return id;
}

/* The heap that a client opened under a name, by its key or, wrongly, by another one. */
const HeapEntry* find_opened(const void* key, etmem_id name, etmem_id owner, uint32_t kind) {
  const HeapEntry* other = nullptr;
  for (const HeapEntry* e = heap_list; e != nullptr; e = e->next) {
    if (e->key == nullptr || e->record.name != name || e->record.owner != owner) continue;
    if (e->record.memory_kind != kind) continue;
    if (e->key == key) return e;
    other = e;
  }
  return other;
}

etmem_id heap_open(const void* key, uint32_t kind, etmem_id name, etmem_id owner, etmem_id category) {
  if (kind > format::kOtherDevice) kind = format::kOtherDevice;
  Entry entry;
  if (!entry) return 0;
  format::MetaHeap record = {0, name, owner, category, t_state.scope, kind};
  {
    Guard guard(heap_lock);
    const HeapEntry* opened = find_opened(key, name, owner, kind);
    if (opened != nullptr) {
      record.id = opened->record.id;
      if (opened->key != key) recorder::misuse(format::kMisuseHeapTwice, name);
      return record.id;
    }
    record.id = __atomic_add_fetch(&heaps, 1, __ATOMIC_RELAXED);
    if (!keep_heap(record, key)) return 0;
  }
  recorder::meta(format::kMetaHeap, record);
  return record.id;
}

void heap_alloc(etmem_id heap, const void* address, size_t bytes) {
  if (heap == 0 || !recorder::wanted() || !is_range(address, bytes, 0)) return;
  recorder::event(format::kHeapAlloc, 0, address, bytes, heap);
}

void heap_free(etmem_id heap, const void* address) {
  if (heap != 0 && recorder::wanted()) recorder::event(format::kHeapFree, 0, address, 0, heap);
}

void heap_reset(etmem_id heap) {
  if (heap != 0 && recorder::wanted()) recorder::event(format::kHeapReset, 0, nullptr, 0, heap);
}

etmem_id segment(const etmem_segment* s) {
  Entry entry;
  if (!entry) return 0;
  const uint32_t id = __atomic_add_fetch(&segments, 1, __ATOMIC_RELAXED);
  const format::MetaSegment record = {reinterpret_cast<uint64_t>(s->address),
                                      s->bytes,
                                      s->offset,
                                      id,
                                      s->type,
                                      s->index,
                                      s->name,
                                      t_state.scope,
                                      s->program};
  return recorder::meta(format::kMetaSegment, record) ? id : 0;
}

void segment_free(etmem_id id) {
  if (id <= older_segments) return;
  if (Entry entry; entry) recorder::meta(format::kMetaSegmentFree, format::MetaSegmentFree{id, t_state.scope});
}

void note(etmem_id key, etmem_id value) {
  if (Entry entry; entry) recorder::meta(format::kMetaNote, format::MetaNote{key, value});
}

void snapshot(etmem_id name, etmem_id scope) {
  if (Entry entry; entry) observe::snapshot(name, scope);
}

void expect_inferences(uint64_t n) { __atomic_store_n(&expected, n, __ATOMIC_RELAXED); }

uint64_t remaining_inferences() {
  const uint64_t n = __atomic_load_n(&expected, __ATOMIC_RELAXED);
  if (n > 0) __atomic_store_n(&expected, n - 1, __ATOMIC_RELAXED);
  if (n == 1) last_seen = true;
  return n;
}

void counter(etmem_id name, uint32_t unit, int64_t value) {
  if (unit > format::kUnitBytes) unit = format::kUnitNumber;
  if (Entry entry; entry) {
    const format::MetaCounter record = {name, unit, t_state.scope, 0, value, sys::now_ns()};
    recorder::meta(format::kMetaCounter, record);
  }
}

void label(const void* address, size_t bytes, etmem_id name) {
  if (!is_range(address, bytes, name)) return;
  if (Entry entry; entry) {
    const format::MetaLabel record = {reinterpret_cast<uint64_t>(address), bytes, name, t_state.scope};
    recorder::meta(format::kMetaLabel, record);
  }
}

int take_runtime() { return stubs::take_runtime() ? 1 : 0; }

uint32_t next_program() { return __atomic_add_fetch(&programs, 1, __ATOMIC_RELAXED); }

}  // namespace

bool inferences_are_over() { return last_seen; }

void begin_clients() {
  last_seen = false;
  older_segments = __atomic_load_n(&segments, __ATOMIC_RELAXED);
  for (const HeapEntry* heap = heap_list; heap != nullptr; heap = heap->next) {
    format::MetaHeap record = heap->record;
    record.scope = 0;  // a scope of an earlier trace
    recorder::meta(format::kMetaHeap, record);
  }
}

}  // namespace etmem

/* For Python (ctypes): records this process from now on. Options are those of recording.h, 0 on success, else errno. */
extern "C" ETMEM_EXPORT int etmem_attach(const char* path, const etmem::recording_options* options) {
  if (etmem::recording()) return EBUSY;
  errno = 0;
  if (!etmem::start_recording(path, *options)) return errno != 0 ? errno : EIO;
  etmem::observe::snapshot(etmem::recorder::string("attach"), 0);
  return etmem::attach::attach() > 0 ? 0 : ENOSYS;
}

/* For Python: `told` is called at the edges of phases until the recording ends; nullptr: no more. */
extern "C" ETMEM_EXPORT void etmem_on_edge(void (*told)(void)) {
  __atomic_store_n(&etmem::scopes::on_edge, told, __ATOMIC_RELEASE);
}

extern "C" ETMEM_EXPORT void etmem_detach(void) {
  if (!etmem::recording()) return;
  etmem::attach::detach();
  etmem::stop_recording("detach");
}

const etmem_api etmem_api_v1 = {
    1,
    sizeof(etmem_api),
    etmem::is_recording,
    etmem::string,
    etmem::scope_begin,
    etmem::scope_end,
    etmem::claim,
    etmem::heap_register,
    etmem::heap_alloc,
    etmem::heap_free,
    etmem::heap_reset,
    etmem::segment,
    etmem::segment_free,
    etmem::note,
    etmem::snapshot,
    etmem::expect_inferences,
    etmem::remaining_inferences,
    etmem::arena::allocate,
    etmem::next_program,
    etmem::heap_open,
    etmem::counter,
    etmem::label,
    etmem::take_runtime,
};
