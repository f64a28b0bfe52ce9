/* What the agent's stubs jump to: puts the decorators of etmem/executorch.hpp into an unmodified process.
 *
 * Compiled on first use against the headers of the ExecuTorch that the process loads, and loaded for that one only.
 */
#include "etmem/hooks.h"

#include <executorch/runtime/executor/memory_manager.h>
#include <executorch/runtime/executor/method.h>
#include <executorch/runtime/executor/program.h>
#if __has_include(<executorch/extension/flat_tensor/flat_tensor_data_map.h>)
#include <executorch/extension/flat_tensor/flat_tensor_data_map.h>
#define ETMEM_FLAT_TENSOR 1
#endif

#include "etmem/executorch.hpp"
#include "in_front.hpp"
#include "traced_backend.hpp"
#include "traced_method.hpp"

#ifndef ETMEM_BUILD_ID
#error "ETMEM_BUILD_ID: the build id of the library that these hooks are for"
#endif

/* Upstream's own door for tests: the flatbuffer's address tells a Program, which itself moves. */
namespace executorch::ET_RUNTIME_NAMESPACE::testing {
class ProgramTestFriend {
 public:
  static const void* flatbuffer(const Program& program) { return program.get_internal_program(); }
};
}  // namespace executorch::ET_RUNTIME_NAMESPACE::testing

namespace etmem {
namespace {

using et::testing::ProgramTestFriend;

constexpr const char* kSetInput = "_ZN10executorch7runtime6Method9set_inputERKNS0_6EValueEm";
constexpr const char* kGetBackendClass = "_ZN10executorch7runtime17get_backend_classEPKc";
constexpr const char* kFlatTensorLoad = "_ZN10executorch9extension17FlatTensorDataMap4loadEPNS_7runtime10DataLoaderE";

/* Program ids by the address of their flatbuffer; a later program at the same address replaces an earlier one. */
class Programs {
 public:
  void bind(const void* flatbuffer, uint32_t id) {
    LockGuard guard(lock_);
    entries_[next_ % kEntries] = {flatbuffer, id};
    ++next_;
  }
  uint32_t find(const void* flatbuffer) {
    LockGuard guard(lock_);
    const uint32_t held = next_ < kEntries ? next_ : kEntries;
    for (uint32_t back = 1; back <= held; ++back) {
      const Entry& entry = entries_[(next_ - back) % kEntries];
      if (entry.flatbuffer == flatbuffer) return entry.id;
    }
    return 0;  // loaded before recording began
  }

 private:
  static constexpr uint32_t kEntries = 1024;
  struct Entry {
    const void* flatbuffer;
    uint32_t id;
  };
  SpinLock lock_;
  Entry entries_[kEntries];
  uint32_t next_ = 0;
};
Programs programs;

et::Result<et::Program> program_load(et::DataLoader* loader, et::Program::Verification verification) {
  static const auto call =
      original<et::Result<et::Program> (*)(et::DataLoader*, et::Program::Verification)>(kProgramLoad);
  if (api() == nullptr || loader == nullptr) return call(loader, verification);
  const uint32_t id = api_slot()->next_program();
  static Pool<TracedDataLoader> loaders;  // never released: the Program keeps it, and its destructor is inline
  et::DataLoader* traced = loaders.make(loader, id);
  if (const auto bytes = loader->size(); bytes.ok()) note_program(id, ".bytes", bytes.get());
  Scope scope(ETMEM_PROGRAM_LOAD, 0, id, 0);
  auto program = call(traced != nullptr ? traced : loader, verification);
  if (program.ok()) programs.bind(ProgramTestFriend::flatbuffer(program.get()), id);
  scope.end(!program.ok());
  return program;
}

void claim_planned_memory(const et::Program* program, const char* name, et::HierarchicalAllocator* planned) {
  if (api() == nullptr || planned == nullptr) return;
  const auto meta = program->method_meta(name);
  if (!meta.ok()) return;
  for (size_t i = 0; i < meta->num_memory_planned_buffers(); ++i) {
    const auto bytes = meta->memory_planned_buffer_size(i);
    if (!bytes.ok() || bytes.get() == 0) continue;
    const auto address = planned->get_offset_address(static_cast<uint32_t>(i), 0, static_cast<size_t>(bytes.get()));
    if (!address.ok() || address.get() == nullptr) continue;
    claim_planned(address.get(), static_cast<size_t>(bytes.get()), i);
  }
}

/* load_method took two more arguments from 1.3 on; the type of the header at hand decides. */
template <typename Signature>
struct LoadMethod;

template <typename... Rest>
struct LoadMethod<et::Result<et::Method> (et::Program::*)(const char*, et::MemoryManager*, et::EventTracer*, Rest...)
                      const> {
  static constexpr const char* kSymbol = sizeof...(Rest) == 1 ? kLoadMethod4 : kLoadMethod6;

  static et::Result<et::Method> hook(const et::Program* self, const char* name, et::MemoryManager* memory,
                                     et::EventTracer* tracer, Rest... rest) {
    using Call =
        et::Result<et::Method> (*)(const et::Program*, const char*, et::MemoryManager*, et::EventTracer*, Rest...);
    static const Call call = original<Call>(kSymbol);
    if (api() == nullptr || memory == nullptr || name == nullptr) return call(self, name, memory, tracer, rest...);

    const uint32_t program = programs.find(ProgramTestFriend::flatbuffer(*self));
    TracedMethod* method = TracedMethod::make(tracer, program, name_id(name));
    Scope scope(ETMEM_METHOD_LOAD, name_id(name), program, 0);
    claim_planned_memory(self, name, memory->planned_memory());
    et::MemoryManager* traced = traced_memory(memory);
    if (method == nullptr || traced == nullptr) return call(self, name, memory, tracer, rest...);

    method->copy_settings();
    TracedMethod* outer = t_loading;
    t_loading = method;
    auto result = call(self, name, traced, method, rest...);
    t_loading = outer;
    const etmem_id ended = scope.end(!result.ok());
    if (!result.ok()) method->end();
    if (const etmem_api* table = api()) table->snapshot(name_id("method_load"), ended);
    return result;
  }

 private:
  static et::MemoryManager* traced_memory(et::MemoryManager* memory) {
    void* place = api_slot()->allocate(sizeof(et::MemoryManager));
    if (place == nullptr) return nullptr;
    return new (place)
        et::MemoryManager(traced_allocator(memory->method_allocator(), kMethodAllocator), memory->planned_memory(),
                          traced_allocator(memory->temp_allocator(), kTempAllocator));
  }
};
using LoadMethodHook = LoadMethod<decltype(&et::Program::load_method)>;

/* Said once for a method that runs unseen; its address is all there is to tell it by. */
void note_unseen(const et::Method* method) {
  static const et::Method* said = nullptr;
  if (said == method) return;
  said = method;
  const etmem_api* table = api();
  const auto meta = method->method_meta();
  char text[256] = "it was loaded before the recording began, so its inferences are not in it: ";
  std::strncat(text, meta.name(), sizeof text - std::strlen(text) - 1);
  if (table != nullptr) table->note(name_id("issue.methods_loaded_before_attach"), name_id(text));
}

et::Error method_execute(et::Method* self) {
  static const auto call = original<et::Error (*)(et::Method*)>(kExecute);
  TracedMethod* method = traced_method(self);
  if (method != nullptr) method->copy_settings();
  const etmem_api* table = api();
  if (method == nullptr && table != nullptr) note_unseen(self);
  if (method == nullptr || table == nullptr) return call(self);
  const uint64_t iteration = method->iterations++;
  Scope scope(ETMEM_INFERENCE, method->name(), method->program(), static_cast<int64_t>(iteration));
  const et::Error error = call(self);
  method->ended(iteration, scope.end(error != et::Error::Ok));
  return error;
}

void claim_tensor(const ::executorch::aten::Tensor& tensor) {
  claim_caller_memory(tensor.const_data_ptr(), tensor.nbytes(), "input");
}

et::Error method_set_input(et::Method* self, const et::EValue& value, size_t index) {
  static const auto call = original<et::Error (*)(et::Method*, const et::EValue&, size_t)>(kSetInput);
  if (value.isTensor()) {
    claim_tensor(value.toTensor());
  } else if (value.isTensorList()) {
    for (const auto& tensor : value.toTensorList()) claim_tensor(tensor);
  }
  return call(self, value, index);
}

et::Error method_set_output_data_ptr(et::Method* self, void* buffer, size_t bytes, size_t index) {
  static const auto call = original<et::Error (*)(et::Method*, void*, size_t, size_t)>(kSetOutput);
  claim_caller_memory(buffer, bytes, "output");
  return call(self, buffer, bytes, index);
}

/* Only while a method loads: elsewhere the application may cast what it gets back to the backend's own class. */
et::BackendInterface* get_backend_class(const char* name) {
  static const auto call = original<et::BackendInterface* (*)(const char*)>(kGetBackendClass);
  et::BackendInterface* backend = call(name);
  if (backend == nullptr || t_loading == nullptr || api() == nullptr) return backend;
  return TracedBackend::around(backend, name);
}

#ifdef ETMEM_FLAT_TENSOR
using ::executorch::extension::FlatTensorDataMap;

et::Result<FlatTensorDataMap> flat_tensor_load(et::DataLoader* loader) {
  static const auto call = original<et::Result<FlatTensorDataMap> (*)(et::DataLoader*)>(kFlatTensorLoad);
  static Pool<TracedDataLoader> loaders;  // never released: the map keeps it
  et::DataLoader* traced = api() != nullptr && loader != nullptr ? loaders.make(loader, 0u) : nullptr;
  return call(traced != nullptr ? traced : loader);
}
#endif

const etmem_hook hooks[] = {
    {kProgramLoad, address_of(program_load)},
    {LoadMethodHook::kSymbol, address_of(LoadMethodHook::hook)},
    {kExecute, address_of(method_execute)},
    {kDestroyComplete, address_of(method_destroy_complete<et::Method, 0>)},
    {kDestroyBase, address_of(method_destroy_base<et::Method, 0>)},
    {kSetInput, address_of(method_set_input)},
    {kSetOutput, address_of(method_set_output_data_ptr)},
    {kGetEventTracer, address_of(method_get_event_tracer<et::Method>)},
    {kGetBackendClass, address_of(get_backend_class)},
#ifdef ETMEM_FLAT_TENSOR
    {kFlatTensorLoad, address_of(flat_tensor_load)},
#endif
};

}  // namespace

}  // namespace etmem

extern "C" __attribute__((visibility("default"))) const etmem_hooks etmem_hooks_v1 = {
    ETMEM_HOOKS_VERSION, ETMEM_BUILD_ID, sizeof etmem::hooks / sizeof *etmem::hooks, etmem::hooks, etmem::bind_hooks};
