/* What the hooks of every ExecuTorch do alike, whatever its headers tell. */
#pragma once

#include "etmem/executorch.hpp"
#include "etmem/traced_method.hpp"

namespace etmem {

#ifndef ETMEM_FIND_ORIGINAL
#define ETMEM_FIND_ORIGINAL nullptr  // the agent tells its hooks libraries later
#endif
inline void* (*find_original)(void* runtime, const char* symbol) = ETMEM_FIND_ORIGINAL;
inline void* this_runtime = nullptr;

/* The runtime's own definition, looked up once. Member functions are called as free functions with `this` first,
 * which is how the Itanium ABI passes it. */
template <typename Function>
Function original(const char* symbol) {
  return reinterpret_cast<Function>(find_original(this_runtime, symbol));
}

template <typename Function>
constexpr void* address_of(Function* function) {
  return reinterpret_cast<void*>(function);
}

inline void bind_hooks(const etmem_api* table, void* runtime, void* (*original_of)(void*, const char*)) {
  etmem_set_api(table);
  this_runtime = runtime;
  find_original = original_of;
}

constexpr const char* kProgramLoad = "_ZN10executorch7runtime7Program4loadEPNS0_10DataLoaderENS1_12VerificationE";
constexpr const char* kLoadMethod4 =
    "_ZNK10executorch7runtime7Program11load_methodEPKcPNS0_13MemoryManagerEPNS0_11EventTracerEPKNS0_12NamedDataMapE";
constexpr const char* kLoadMethod5 =
    "_ZNK10executorch7runtime7Program11load_methodEPKcPNS0_13MemoryManagerEPNS0_11EventTracerEPKNS0_12NamedDataMapE"
    "PKNS0_21LoadBackendOptionsMapE";
constexpr const char* kLoadMethod6 =
    "_ZNK10executorch7runtime7Program11load_methodEPKcPNS0_13MemoryManagerEPNS0_11EventTracerEPKNS0_12NamedDataMapE"
    "PKNS0_21LoadBackendOptionsMapENS0_4SpanIKNS0_6KernelEEE";
constexpr const char* kExecute = "_ZN10executorch7runtime6Method7executeEv";
constexpr const char* kDestroyComplete = "_ZN10executorch7runtime6MethodD1Ev";
constexpr const char* kDestroyBase = "_ZN10executorch7runtime6MethodD2Ev";
constexpr const char* kSetOutput = "_ZN10executorch7runtime6Method19set_output_data_ptrEPvmm";
constexpr const char* kGetEventTracer = "_ZN10executorch7runtime6Method16get_event_tracerEv";

constexpr const char* kMethodAllocator = "method_allocator";
constexpr const char* kTempAllocator = "temp_allocator";

inline void note_program(uint32_t id, const char* what, uint64_t value) {
  const etmem_api* table = api();
  if (table == nullptr) return;
  char key[64] = "program.";
  append_number(key, id);
  std::strcat(key, what);
  char text[32] = {};
  append_number(text, value);
  table->note(name_id(key), name_id(text));
}

#ifndef ETMEM_MAX_PROGRAMS
#define ETMEM_MAX_PROGRAMS 1024  // told apart at once; a device with little memory sets less
#endif

/* Program ids by an address that tells a program, which itself moves: of its flatbuffer, or of its data loader. A later
 * program at the same address replaces an earlier one. */
class Programs {
 public:
  void bind(const void* place, uint32_t id) {
    LockGuard guard(lock_);
    entries_[next_ % kEntries] = {place, id};
    ++next_;
  }
  template <typename Is>
  uint32_t find(Is is) {
    LockGuard guard(lock_);
    const uint32_t held = next_ < kEntries ? next_ : kEntries;
    for (uint32_t back = 1; back <= held; ++back) {
      const Entry& entry = entries_[(next_ - back) % kEntries];
      if (is(entry.place)) return entry.id;
    }
    return 0;  // loaded before recording began
  }

 private:
  static constexpr uint32_t kEntries = ETMEM_MAX_PROGRAMS;
  struct Entry {
    const void* place;
    uint32_t id;
  };
  SpinLock lock_;
  Entry entries_[kEntries];
  uint32_t next_ = 0;
};
inline Programs programs;

/* One decorator for each underlying allocator and role, for the process's life: XNNPACK keys its per-model workspace
 * on the allocator's address. */
inline et::MemoryAllocator* traced_allocator(et::MemoryAllocator* inner, const char* role) {
  struct Entry {
    TracedMemoryAllocator allocator;
    const char* role;
    Entry* next;
  };
  static SpinLock lock;
  static Entry* entries = nullptr;
  if (inner == nullptr) return nullptr;
  {
    LockGuard guard(lock);
    for (Entry* e = entries; e != nullptr; e = e->next) {
      if (e->allocator.inner() == inner && e->role == role) return &e->allocator;
    }
  }
  void* place = etmem_get_api()->allocate(sizeof(Entry));
  if (place == nullptr) return inner;
  Entry* fresh = new (place) Entry{TracedMemoryAllocator(inner, role), role, nullptr};
  LockGuard guard(lock);
  fresh->next = entries;
  entries = fresh;
  return &fresh->allocator;
}

inline void claim_planned(const void* address, size_t bytes, size_t buffer) {
  const etmem_api* table = api();
  if (table == nullptr) return;
  char label[32] = "planned[";
  append_number(label, buffer + 1);  // mem_id 0 is constants: the first buffer is mem_id 1
  std::strcat(label, "]");
  table->claim(address, bytes, name_id("executorch"), name_id("planned_memory"), name_id(label));
}

inline void claim_caller_memory(const void* address, size_t bytes, const char* name) {
  const etmem_api* table = api();
  if (table == nullptr || address == nullptr || bytes == 0) return;
  table->claim(address, bytes, name_id("host"), name_id("inputs_outputs"), name_id(name));
}

/* The method that a tracer was given to; the symbol tells, so Method itself need not be known. */
template <typename Method>
TracedMethod* traced_method(Method* method) {
  static const auto call = original<et::EventTracer* (*)(Method*)>(kGetEventTracer);
  return TracedMethod::find(call(method));
}

/* The application sees its own tracer, or it could not cast it back to what it is. */
template <typename Method>
et::EventTracer* method_get_event_tracer(Method* self) {
  static const auto call = original<et::EventTracer* (*)(Method*)>(kGetEventTracer);
  et::EventTracer* tracer = call(self);
  TracedMethod* method = TracedMethod::find(tracer);
  return method != nullptr ? method->inner() : tracer;
}

/* Also runs on moved-from shells, which have no tracer, and on what is left of a load that failed. */
template <typename Method>
void destroy_method(Method* self, void (*call)(Method*), uint32_t flags) {
  TracedMethod* method = traced_method(self);
  if (method == nullptr || method == t_loading) return call(self);
  method->before_unload();
  {
    Scope scope(ETMEM_UNLOAD, method->name(), method->program(), 0, flags);
    call(self);
  }
  method->end();
}

template <typename Method, uint32_t kFlags>
void method_destroy_complete(Method* self) {
  static const auto call = original<void (*)(Method*)>(kDestroyComplete);
  destroy_method(self, call, kFlags);
}

template <typename Method, uint32_t kFlags>
void method_destroy_base(Method* self) {
  static const auto call = original<void (*)(Method*)>(kDestroyBase);
  destroy_method(self, call, kFlags);
}

}  // namespace etmem
