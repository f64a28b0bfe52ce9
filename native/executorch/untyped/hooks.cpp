/* Hooks for an ExecuTorch that does not ship the headers of Program and Method (the wheels before 1.3): the phases,
 * the data loader and the allocators, by functions whose arguments are forwarded without being looked at. Delegates
 * are told by call stacks when the trace is read, so every allocation inside a phase records one.
 *
 * Only for libraries without an event tracer: delegates are handed the tracer of the method, and with one compiled in
 * they would allocate for it.
 */
#include "etmem/hooks.h"

#define ET_LOG_ENABLED 0 /* probing for the number of planned buffers asks for one too many */
#include <executorch/runtime/core/hierarchical_allocator.h>

#include "etmem/in_front.hpp"

#ifndef ETMEM_BUILD_ID
#error "ETMEM_BUILD_ID: the build id of the library that these hooks are for"
#endif

namespace etmem {
namespace {

constexpr uint32_t kStacks = ETMEM_RECORD_STACKS;

/* A Result of a class: returned through a hidden pointer, because it is not trivial to copy. Never made here. */
class Returned {
 public:
  Returned(Returned&&);
  ~Returned();

 private:
  unsigned char bytes_[16];
};

/* The three pointers of a MemoryManager, which has been those since there is one. */
struct MemoryManager {
  et::MemoryAllocator* method_allocator;
  et::HierarchicalAllocator* planned_memory;
  et::MemoryAllocator* temp_allocator;
};

/* Ends with the call that it stands around, whose result is made in the caller's memory. */
class Load {
 public:
  Load(uint32_t kind, etmem_id name, uint32_t program)
      : scope_(kind, name, program, 0, kStacks), snapshot_(kind == ETMEM_METHOD_LOAD) {}
  ~Load() {
    const etmem_id ended = scope_.end(false);
    const etmem_api* table = snapshot_ ? api() : nullptr;
    if (table != nullptr) table->snapshot(name_id("method_load"), ended);
  }

 private:
  Scope scope_;
  bool snapshot_;
};

/* A Program keeps its data loader among its first fields. */
uint32_t program_of(const void* program) {
  const auto* words = static_cast<const void* const*>(program);
  return programs.find([words](const void* loader) {
    for (int at = 0; at < 8; ++at) {
      if (words[at] == loader) return true;
    }
    return false;
  });
}

Returned program_load(et::DataLoader* loader, uint32_t verification) {
  static const auto call = original<Returned (*)(et::DataLoader*, uint32_t)>(kProgramLoad);
  if (api() == nullptr || loader == nullptr) return call(loader, verification);
  const uint32_t id = etmem_get_api()->next_program();
  static Pool<TracedDataLoader> loaders;  // never released: the Program keeps it
  et::DataLoader* traced = loaders.make(loader, id);
  if (traced == nullptr) traced = loader;
  if (const auto bytes = loader->size(); bytes.ok()) note_program(id, ".bytes", bytes.get());
  programs.bind(traced, id);
  const Load scope(ETMEM_PROGRAM_LOAD, 0, id);
  return call(traced, verification);
}

/* The largest span that a planned buffer gives out: its size. */
size_t planned_bytes(et::HierarchicalAllocator* planned, uint32_t buffer) {
  size_t fits = 0;
  for (size_t step = size_t{1} << 46; step != 0; step >>= 1) {
    if (planned->get_offset_address(buffer, 0, fits + step).ok()) fits += step;
  }
  return fits;
}

void claim_planned_memory(et::HierarchicalAllocator* planned) {
  const etmem_api* table = api();
  if (table == nullptr || planned == nullptr) return;
  for (uint32_t i = 0;; ++i) {
    const auto address = planned->get_offset_address(i, 0, 0);
    if (!address.ok()) return;
    if (address.get() != nullptr) claim_planned(address.get(), planned_bytes(planned, i), i);
  }
}

/* A method's tracer and memory, with etmem's in front, while it loads. */
class Loading {
 public:
  Loading(uint32_t program, const char* name, const MemoryManager* given, et::EventTracer* tracer)
      : method(TracedMethod::make(tracer, program, name_id(name))), outer_(t_loading) {
    t_loading = method;
    void* place = etmem_get_api()->allocate(sizeof(MemoryManager));
    if (place == nullptr) return;
    memory = new (place) MemoryManager{traced_allocator(given->method_allocator, kMethodAllocator),
                                       given->planned_memory, traced_allocator(given->temp_allocator, kTempAllocator)};
  }
  ~Loading() { t_loading = outer_; }

  TracedMethod* const method;
  MemoryManager* memory = nullptr;

 private:
  TracedMethod* outer_;
};

template <typename... Rest>
Returned load_method(const char* symbol, const void* self, const char* name, MemoryManager* memory,
                     et::EventTracer* tracer, Rest... rest) {
  using Call = Returned (*)(const void*, const char*, MemoryManager*, et::EventTracer*, Rest...);
  static const Call call = original<Call>(symbol);
  if (api() == nullptr || memory == nullptr || name == nullptr) return call(self, name, memory, tracer, rest...);
  const uint32_t program = program_of(self);
  const Loading loading(program, name, memory, tracer);
  const Load scope(ETMEM_METHOD_LOAD, name_id(name), program);
  claim_planned_memory(memory->planned_memory);
  if (loading.method == nullptr || loading.memory == nullptr) return call(self, name, memory, tracer, rest...);
  loading.method->copy_settings();
  return call(self, name, loading.memory, loading.method, rest...);
}

Returned load_method_4(const void* self, const char* name, MemoryManager* memory, et::EventTracer* tracer,
                       const void* data) {
  return load_method(kLoadMethod4, self, name, memory, tracer, data);
}

Returned load_method_5(const void* self, const char* name, MemoryManager* memory, et::EventTracer* tracer,
                       const void* data, const void* options) {
  return load_method(kLoadMethod5, self, name, memory, tracer, data, options);
}

uint32_t method_execute(void* self) {
  static const auto call = original<uint32_t (*)(void*)>(kExecute);
  TracedMethod* method = traced_method(self);
  const etmem_api* table = api();
  if (method == nullptr || table == nullptr) return call(self);
  method->copy_settings();
  const uint64_t iteration = method->iterations++;
  Scope scope(ETMEM_INFERENCE, method->name(), method->program(), static_cast<int64_t>(iteration), kStacks);
  const uint32_t error = call(self);
  method->ended(iteration, scope.end(error != 0));
  return error;
}

uint32_t method_set_output_data_ptr(void* self, void* buffer, size_t bytes, size_t index) {
  static const auto call = original<uint32_t (*)(void*, void*, size_t, size_t)>(kSetOutput);
  claim_caller_memory(buffer, bytes, "output");
  return call(self, buffer, bytes, index);
}

const etmem_hook hooks[] = {
    {kProgramLoad, address_of(program_load)},
    {kLoadMethod4, address_of(load_method_4)},
    {kLoadMethod5, address_of(load_method_5)},
    {kExecute, address_of(method_execute)},
    {kDestroyComplete, address_of(method_destroy_complete<void, kStacks>)},
    {kDestroyBase, address_of(method_destroy_base<void, kStacks>)},
    {kGetEventTracer, address_of(method_get_event_tracer<void>)},
    {kSetOutput, address_of(method_set_output_data_ptr)},
};

void bind(const etmem_api* table, void* runtime, void* (*original_of)(void*, const char*)) {
  bind_hooks(table, runtime, original_of);
  table->note(name_id("hooks.untyped"), name_id("1"));
}

}  // namespace
}  // namespace etmem

extern "C" __attribute__((visibility("default"))) const etmem_hooks etmem_hooks_v1 = {
    ETMEM_HOOKS_VERSION, ETMEM_BUILD_ID, sizeof etmem::hooks / sizeof *etmem::hooks, etmem::hooks, etmem::bind};
