// Memory of a device that is none: an allocator for CUDA, registered with ExecuTorch, which asks it for two buffers.
#include <executorch/runtime/core/device_memory_buffer.h>

#include <cstdint>

#ifdef ETMEM_LINKED_IN
#include "etmem/wrap.hpp"
#endif

using namespace executorch::runtime;

namespace {

class NoDevice final : public DeviceAllocator {
 public:
  Result<void*> allocate(size_t bytes, etensor::DeviceIndex, size_t) override {
    if (bytes > (size_t{1} << 30)) return Error::MemoryAllocationFailed;
    next_ += bytes;
    return reinterpret_cast<void*>(next_ - bytes);
  }
  void deallocate(void*, etensor::DeviceIndex) override {}
  Error copy_host_to_device(void*, const void*, size_t, etensor::DeviceIndex) override { return Error::Ok; }
  Error copy_device_to_host(void*, const void*, size_t, etensor::DeviceIndex) override { return Error::Ok; }
  etensor::DeviceType device_type() const override { return etensor::DeviceType::CUDA; }

 private:
  uintptr_t next_ = 0x10000000;
};

NoDevice device;

}  // namespace

int main() {
  register_device_allocator(&device);
  auto first = DeviceMemoryBuffer::create(3 << 20, etensor::DeviceType::CUDA);
  if (!first.ok()) return 3;
  {
    auto second = DeviceMemoryBuffer::create(5 << 20, etensor::DeviceType::CUDA);
    if (!second.ok()) return 4;
  }
  if (DeviceMemoryBuffer::create(size_t{2} << 30, etensor::DeviceType::CUDA).ok()) return 5;
  return 0;
}
