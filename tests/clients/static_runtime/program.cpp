// Program and MethodMeta of the static test runtime.
#include <executorch/runtime/executor/program.h>

#include <cstdlib>

namespace executorch::runtime {

using Text = const char*;

Result<Program> Program::load(DataLoader* loader, Verification) {
  const auto bytes = loader->size();
  if (!bytes.ok()) return bytes.error();
  auto data = loader->load(0, bytes.get(), DataLoader::SegmentInfo(DataLoader::SegmentInfo::Type::Program));
  if (!data.ok()) return data.error();
  const auto* text = static_cast<const executorch_flatbuffer::Program*>(data->data());
  return Program(loader, 0, std::move(data.get()), text, FreeableBuffer{}, std::nullopt);
}

Result<MethodMeta> Program::method_meta(const char*) const {
  return MethodMeta(reinterpret_cast<const executorch_flatbuffer::ExecutionPlan*>(internal_program_));
}

Result<Method> Program::load_method(const char*, MemoryManager* memory, EventTracer* tracer, const NamedDataMap* data,
                                    const LoadBackendOptionsMap* options, Span<const Kernel> kernels) const {
  return Method::load(nullptr, this, memory, tracer, data, options, kernels);
}

namespace internal {
Result<FreeableBuffer> PteDataMap::get_data(std::string_view) const { return Error::NotFound; }
Result<uint32_t> PteDataMap::get_num_keys() const { return 0u; }
Result<const char*> PteDataMap::get_key(uint32_t) const { return Error::NotFound; }
}  // namespace internal

MethodMeta::MethodMeta(const executorch_flatbuffer::ExecutionPlan* plan) : s_plan_(plan) {}
const char* MethodMeta::name() const { return "forward"; }
size_t MethodMeta::num_memory_planned_buffers() const { return 1; }
Result<int64_t> MethodMeta::memory_planned_buffer_size(size_t) const {
  return std::atoll(reinterpret_cast<Text>(s_plan_));
}
Result<etensor::Device> MethodMeta::memory_planned_buffer_device(size_t) const {
  return etensor::Device(etensor::DeviceType::CPU);
}

}  // namespace executorch::runtime
