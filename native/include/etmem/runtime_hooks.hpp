/* What stands in front of ExecuTorch's own functions: the decorators of etmem/executorch.hpp, put where they belong.
 *
 * Used by the hooks library that the agent loads (native/executorch), and by etmem/wrap.hpp, which links them into an
 * application. Member functions are free functions here with `this` first, which is how the Itanium ABI passes it.
 */
#ifndef ETMEM_RUNTIME_HOOKS_HPP_
#define ETMEM_RUNTIME_HOOKS_HPP_

#include <executorch/runtime/executor/memory_manager.h>
#include <executorch/runtime/executor/method.h>
#include <executorch/runtime/executor/program.h>
#if __has_include(<executorch/extension/flat_tensor/flat_tensor_data_map.h>) && !defined(ETMEM_NO_FLAT_TENSOR)
#include <executorch/extension/flat_tensor/flat_tensor_data_map.h>
#define ETMEM_FLAT_TENSOR 1
#endif

#include "etmem/executorch.hpp"
#include "etmem/in_front.hpp"
#include "etmem/traced_backend.hpp"
#include "etmem/traced_method.hpp"

/* Upstream's own door for tests: the flatbuffer's address tells a Program, which itself moves. */
namespace executorch::ET_RUNTIME_NAMESPACE::testing {
class ProgramTestFriend {
 public:
  static const void* flatbuffer(const Program& program) { return program.get_internal_program(); }
};
}  // namespace executorch::ET_RUNTIME_NAMESPACE::testing

namespace etmem {
namespace hooks {

using et::testing::ProgramTestFriend;

constexpr const char* kSetInput = "_ZN10executorch7runtime6Method9set_inputERKNS0_6EValueEm";
constexpr const char* kGetBackendClass = "_ZN10executorch7runtime17get_backend_classEPKc";
constexpr const char* kFlatTensorLoad = "_ZN10executorch9extension17FlatTensorDataMap4loadEPNS_7runtime10DataLoaderE";

inline et::Result<et::Program> program_load(et::DataLoader* loader, et::Program::Verification verification) {
  static const auto call =
      original<et::Result<et::Program> (*)(et::DataLoader*, et::Program::Verification)>(kProgramLoad);
  if (api() == nullptr || loader == nullptr) return call(loader, verification);
  const uint32_t id = etmem_get_api()->next_program();
  static Pool<TracedDataLoader> loaders;  // never released: the Program keeps it, and its destructor is inline
  et::DataLoader* traced = loaders.make(loader, id);
  if (const auto bytes = loader->size(); bytes.ok()) note_program(id, ".bytes", bytes.get());
  Scope scope(ETMEM_PROGRAM_LOAD, 0, id, 0);
  auto program = call(traced != nullptr ? traced : loader, verification);
  if (program.ok()) programs.bind(ProgramTestFriend::flatbuffer(program.get()), id);
  scope.end(!program.ok());
  return program;
}

/* A device's addresses say nothing here; its allocator reports them. Headers before 1.5 know of no devices. */
template <typename Meta>
auto is_on_host(const Meta& meta, size_t buffer, int) -> decltype(meta.memory_planned_buffer_device(buffer).ok()) {
  const auto device = meta.memory_planned_buffer_device(buffer);
  return !device.ok() || device.get().is_cpu();
}
template <typename Meta>
bool is_on_host(const Meta&, size_t, long) {
  return true;
}

inline void claim_planned_memory(const et::Program* program, const char* name, et::HierarchicalAllocator* planned) {
  if (api() == nullptr || planned == nullptr) return;
  const auto meta = program->method_meta(name);
  if (!meta.ok()) return;
  for (size_t i = 0; i < meta->num_memory_planned_buffers(); ++i) {
    const auto bytes = meta->memory_planned_buffer_size(i);
    if (!bytes.ok() || bytes.get() == 0 || !is_on_host(meta.get(), i, 0)) continue;
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

    const uint32_t program =
        programs.find([wanted = ProgramTestFriend::flatbuffer(*self)](const void* it) { return it == wanted; });
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
    void* place = etmem_get_api()->allocate(sizeof(et::MemoryManager));
    if (place == nullptr) return nullptr;
    return new (place)
        et::MemoryManager(traced_allocator(memory->method_allocator(), kMethodAllocator), memory->planned_memory(),
                          traced_allocator(memory->temp_allocator(), kTempAllocator));
  }
};
using LoadMethodHook = LoadMethod<decltype(&et::Program::load_method)>;

/* Said once for a method that runs unseen; its address is all there is to tell it by. */
inline void note_unseen(const et::Method* method) {
  static const et::Method* said = nullptr;
  if (said == method) return;
  said = method;
  const etmem_api* table = api();
  const auto meta = method->method_meta();
  char text[256] = "it was loaded before the recording began, so its inferences are not in it: ";
  std::strncat(text, meta.name(), sizeof text - std::strlen(text) - 1);
  if (table != nullptr) table->note(name_id("issue.methods_loaded_before_attach"), name_id(text));
}

inline et::Error method_execute(et::Method* self) {
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

inline void claim_tensor(const ::executorch::aten::Tensor& tensor) {
  claim_caller_memory(tensor.const_data_ptr(), tensor.nbytes(), "input");
}

inline et::Error method_set_input(et::Method* self, const et::EValue& value, size_t index) {
  static const auto call = original<et::Error (*)(et::Method*, const et::EValue&, size_t)>(kSetInput);
  if (value.isTensor()) {
    claim_tensor(value.toTensor());
  } else if (value.isTensorList()) {
    for (const auto& tensor : value.toTensorList()) claim_tensor(tensor);
  }
  return call(self, value, index);
}

inline et::Error method_set_output_data_ptr(et::Method* self, void* buffer, size_t bytes, size_t index) {
  static const auto call = original<et::Error (*)(et::Method*, void*, size_t, size_t)>(kSetOutput);
  claim_caller_memory(buffer, bytes, "output");
  return call(self, buffer, bytes, index);
}

/* Only while a method loads: elsewhere the application may cast what it gets back to the backend's own class. */
inline et::BackendInterface* get_backend_class(const char* name) {
  static const auto call = original<et::BackendInterface* (*)(const char*)>(kGetBackendClass);
  et::BackendInterface* backend = call(name);
  if (backend == nullptr || t_loading == nullptr || api() == nullptr) return backend;
  return TracedBackend::around(backend, name);
}

#ifdef ETMEM_FLAT_TENSOR
using ::executorch::extension::FlatTensorDataMap;

inline et::Result<FlatTensorDataMap> flat_tensor_load(et::DataLoader* loader) {
  static const auto call = original<et::Result<FlatTensorDataMap> (*)(et::DataLoader*)>(kFlatTensorLoad);
  static Pool<TracedDataLoader> loaders;  // never released: the map keeps it
  et::DataLoader* traced = api() != nullptr && loader != nullptr ? loaders.make(loader, 0u) : nullptr;
  return call(traced != nullptr ? traced : loader);
}
#endif

#ifdef ETMEM_DEVICE_ALLOCATOR
constexpr const char* kGetDeviceAllocator = "_ZN10executorch7runtime20get_device_allocatorENS0_7etensor10DeviceTypeE";

/* One decorator per allocator: there are as many as kinds of devices. */
inline et::DeviceAllocator* get_device_allocator(et::etensor::DeviceType type) {
  static const auto call = original<et::DeviceAllocator* (*)(et::etensor::DeviceType)>(kGetDeviceAllocator);
  static SpinLock lock;
  static TracedDeviceAllocator* known[et::etensor::kNumDeviceTypes] = {};
  et::DeviceAllocator* inner = call(type);
  if (inner == nullptr || api() == nullptr) return inner;
  LockGuard guard(lock);
  TracedDeviceAllocator*& place = known[static_cast<size_t>(type)];
  if (place == nullptr || place->inner() != inner) {
    void* memory = etmem_get_api()->allocate(sizeof(TracedDeviceAllocator));
    if (memory == nullptr) return inner;
    place = new (memory) TracedDeviceAllocator(inner);
  }
  return place;
}
#endif

}  // namespace hooks
}  // namespace etmem

#endif  // ETMEM_RUNTIME_HOOKS_HPP_
