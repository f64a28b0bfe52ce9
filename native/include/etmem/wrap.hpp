/* Puts etmem's hooks in front of ExecuTorch's functions when an application is linked: nothing is preloaded, and
 * nothing is asked of the application's code. Include it in any of its source files.
 *
 * With ExecuTorch's shared libraries the definitions below stand in front of theirs, because the libraries call each
 * other through the PLT and the program comes first. With a static ExecuTorch, define ETMEM_WRAP and link with
 * `-Wl,--wrap=SYMBOL` for each symbol of ETMEM_WRAPPED: the target etmem::wrap of native/cmake does both. For
 * ExecuTorch 1.5; older ones are traced by `etmem run`.
 */
#ifndef ETMEM_WRAP_HPP_
#define ETMEM_WRAP_HPP_

namespace etmem::hooks {
inline void* next_definition(void* runtime, const char* symbol);
}
#define ETMEM_FIND_ORIGINAL hooks::next_definition
#include "etmem/runtime_hooks.hpp"

#ifndef ETMEM_WRAP
#include <dlfcn.h>
#include <link.h>
#endif

/* What stands in front: the hook's name, its symbol, what it returns, its parameters, its arguments. */
#define ETMEM_WRAPPED_RUNTIME(W)                                                                                    \
  W(program_load, "_ZN10executorch7runtime7Program4loadEPNS0_10DataLoaderENS1_12VerificationE",                     \
    et::Result<et::Program>, (et::DataLoader * loader, et::Program::Verification verification),                     \
    (loader, verification))                                                                                         \
  W(load_method,                                                                                                    \
    "_ZNK10executorch7runtime7Program11load_methodEPKcPNS0_13MemoryManagerEPNS0_11EventTracerEPKNS0_"               \
    "12NamedDataMapEPKNS"                                                                                           \
    "0_21LoadBackendOptionsMapENS0_4SpanIKNS0_6KernelEEE",                                                          \
    et::Result<et::Method>,                                                                                         \
    (const et::Program* self, const char* name, et::MemoryManager* memory, et::EventTracer* tracer,                 \
     const et::NamedDataMap* data, const et::LoadBackendOptionsMap* options, et::Span<const et::Kernel> kernels),   \
    (self, name, memory, tracer, data, options, kernels))                                                           \
  W(method_execute, "_ZN10executorch7runtime6Method7executeEv", et::Error, (et::Method * self), (self))             \
  W(destroy_complete, "_ZN10executorch7runtime6MethodD1Ev", void, (et::Method * self), (self))                      \
  W(method_set_input, "_ZN10executorch7runtime6Method9set_inputERKNS0_6EValueEm", et::Error,                        \
    (et::Method * self, const et::EValue& value, size_t index), (self, value, index))                               \
  W(method_set_output_data_ptr, "_ZN10executorch7runtime6Method19set_output_data_ptrEPvmm", et::Error,              \
    (et::Method * self, void* buffer, size_t bytes, size_t index), (self, buffer, bytes, index))                    \
  W(event_tracer_of, "_ZN10executorch7runtime6Method16get_event_tracerEv", et::EventTracer*, (et::Method * self),   \
    (self))                                                                                                         \
  W(get_backend_class, "_ZN10executorch7runtime17get_backend_classEPKc", et::BackendInterface*, (const char* name), \
    (name))

#ifdef ETMEM_FLAT_TENSOR
#define ETMEM_WRAPPED_FLAT_TENSOR(W)                                                                 \
  W(flat_tensor_load, "_ZN10executorch9extension17FlatTensorDataMap4loadEPNS_7runtime10DataLoaderE", \
    et::Result<FlatTensorDataMap>, (et::DataLoader * loader), (loader))
#else
#define ETMEM_WRAPPED_FLAT_TENSOR(W)
#endif
#ifdef ETMEM_DEVICE_ALLOCATOR
#define ETMEM_WRAPPED_DEVICE(W)                                                                      \
  W(get_device_allocator, "_ZN10executorch7runtime20get_device_allocatorENS0_7etensor10DeviceTypeE", \
    et::DeviceAllocator*, (et::etensor::DeviceType type), (type))
#else
#define ETMEM_WRAPPED_DEVICE(W)
#endif
#define ETMEM_WRAPPED(W) ETMEM_WRAPPED_RUNTIME(W) ETMEM_WRAPPED_FLAT_TENSOR(W) ETMEM_WRAPPED_DEVICE(W)

namespace etmem::hooks {

inline const auto load_method = LoadMethodHook::hook;
inline const auto destroy_complete = method_destroy_complete<et::Method, 0>;
inline const auto event_tracer_of = method_get_event_tracer<et::Method>;

#ifdef ETMEM_WRAP
#define ETMEM_STAND_IN(symbol) "__wrap_" symbol
#define ETMEM_DECLARE(name, symbol, Result, parameters, arguments) \
  Result real_##name parameters __asm__("__real_" symbol);
ETMEM_WRAPPED(ETMEM_DECLARE)
#undef ETMEM_DECLARE

inline void* next_definition(void*, const char* symbol) {
#define ETMEM_FIND(name, known, Result, parameters, arguments) \
  if (std::strcmp(symbol, known) == 0) return reinterpret_cast<void*>(&real_##name);
  ETMEM_WRAPPED(ETMEM_FIND)
#undef ETMEM_FIND
  return nullptr;
}
#else
#define ETMEM_STAND_IN(symbol) symbol

inline const void* base_of(const void* address) {
  Dl_info info;
  return dladdr(address, &info) != 0 ? info.dli_fbase : nullptr;
}

/* Of the library that defines it: neither what stands here nor, under `etmem run`, the agent's stub. */
inline void* next_definition(void*, const char* symbol) {
  Scope profiler(ETMEM_PROFILER, 0, 0, 0);  // dlopen and dlsym allocate
  const void* own = base_of(reinterpret_cast<const void*>(&next_definition));
  const void* agent = base_of(etmem_get_api());
  link_map* module = nullptr;
  void* program = dlopen(nullptr, RTLD_LAZY);
  if (program == nullptr || dlinfo(program, RTLD_DI_LINKMAP, &module) != 0) return nullptr;
  for (; module != nullptr; module = module->l_next) {
    void* handle = *module->l_name != 0 ? dlopen(module->l_name, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
    void* found = handle != nullptr ? dlsym(handle, symbol) : nullptr;
    const void* base = found != nullptr ? base_of(found) : nullptr;
    if (base != nullptr && base != own && base != agent) return found;
  }
  return nullptr;
}
#endif

/* Weak: any number of files may include this, and a static runtime's own definition is no error but wins. */
#define ETMEM_DEFINE(name, symbol, Result, parameters, arguments)                               \
  __attribute__((weak, used, visibility("default"))) Result stand_in_##name parameters __asm__( \
      ETMEM_STAND_IN(symbol));                                                                  \
  __attribute__((weak, used, visibility("default"))) Result stand_in_##name parameters { return name arguments; }
ETMEM_WRAPPED(ETMEM_DEFINE)
#undef ETMEM_DEFINE

}  // namespace etmem::hooks

namespace etmem {

/* Tells the agent, if there is one, that the application traces its runtime itself, and which one that is. Called once
 * before a program is loaded; TracedModule does. */
inline void trace_runtime() {
  const etmem_api* table = api();
  if (table == nullptr) return;
  if (ETMEM_HAS(table, take_runtime)) table->take_runtime();
#ifndef ETMEM_WRAP
  Dl_info info;
  const void* load = hooks::next_definition(nullptr, kProgramLoad);
  if (load != nullptr && dladdr(load, &info) != 0) {
    table->note(name_id("executorch.library"), name_id(info.dli_fname));
  } else {
    table->note(name_id("issue.executorch_static"),
                name_id("a static ExecuTorch is linked in without -Wl,--wrap: link it with the target etmem::wrap"));
  }
#endif
}

}  // namespace etmem

#endif  // ETMEM_WRAP_HPP_
