// What ExecuTorch's headers call when they check something.
#include <executorch/runtime/core/device_allocator.h>
#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/platform/abort.h>
#include <executorch/runtime/platform/log.h>

#include <cstdlib>

namespace executorch::runtime {

void runtime_abort() { std::abort(); }

namespace internal {
et_timestamp_t get_log_timestamp() { return 0; }
void vlogf(LogLevel, et_timestamp_t, const char*, const char*, size_t, const char*, va_list) {}
}  // namespace internal

size_t etensor::TensorImpl::nbytes() const { return 0; }

DeviceAllocator* get_device_allocator(etensor::DeviceType) { return nullptr; }

}  // namespace executorch::runtime
