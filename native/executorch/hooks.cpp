/* What the agent's stubs jump to: puts the decorators of etmem/executorch.hpp into an unmodified process.
 *
 * Compiled on first use against the headers of the ExecuTorch that the process loads, and loaded for that one only.
 */
#include "etmem/hooks.h"

#include "etmem/runtime_hooks.hpp"

#ifndef ETMEM_BUILD_ID
#error "ETMEM_BUILD_ID: the build id of the library that these hooks are for"
#endif

namespace etmem::hooks {
namespace {

const etmem_hook entries[] = {
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
#ifdef ETMEM_DEVICE_ALLOCATOR
    {kGetDeviceAllocator, address_of(get_device_allocator)},
#endif
};

}  // namespace
}  // namespace etmem::hooks

extern "C" __attribute__((visibility("default"))) const etmem_hooks etmem_hooks_v1 = {
    ETMEM_HOOKS_VERSION, ETMEM_BUILD_ID, sizeof etmem::hooks::entries / sizeof *etmem::hooks::entries,
    etmem::hooks::entries, etmem::bind_hooks};
