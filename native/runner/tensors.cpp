#include "tensors.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/core/exec_aten/util/dim_order_util.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>

namespace etmem::runner {
namespace {

using executorch::aten::BFloat16;
using executorch::aten::Half;
using executorch::aten::ScalarType;
using executorch::aten::Tensor;
using executorch::aten::TensorImpl;
using executorch::runtime::Error;
using executorch::runtime::EValue;
using executorch::runtime::MethodMeta;

/* splitmix64: the same numbers for the same seed on every machine and every run. */
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  /* Uniform in [0, 1) with 24 bits: exact in a float. */
  float next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return static_cast<float>((z ^ (z >> 31)) >> 40) * (1.0f / (1 << 24));
  }

 private:
  uint64_t state_;
};

template <typename T>
void fill(void* data, size_t count, Random random) {
  T* values = static_cast<T*>(data);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<T>(random.next());
}

/* Anything that is not a float is zero: another integer may be out of an index's range. */
void fill_random(void* data, size_t bytes, ScalarType type, uint64_t seed) {
  const Random random(seed);
  switch (type) {
    case ScalarType::Float:
    case ScalarType::ComplexFloat:
      return fill<float>(data, bytes / sizeof(float), random);
    case ScalarType::Double:
    case ScalarType::ComplexDouble:
      return fill<double>(data, bytes / sizeof(double), random);
    case ScalarType::Half:
    case ScalarType::ComplexHalf:
      return fill<Half>(data, bytes / sizeof(Half), random);
    case ScalarType::BFloat16:
      return fill<BFloat16>(data, bytes / sizeof(BFloat16), random);
    default:
      memset(data, 0, bytes);
  }
}

std::string read_file(void* data, size_t bytes, const std::string& path, uint64_t offset) {
  FILE* file = fopen(path.c_str(), "rb");
  if (file == nullptr) return "cannot open " + path + ": " + strerror(errno);
  // Unbuffered: stdio's own buffer would be one more allocation of ours.
  setvbuf(file, nullptr, _IONBF, 0);
  const bool complete = fseeko(file, static_cast<off_t>(offset), SEEK_SET) == 0 && fread(data, 1, bytes, file) == bytes;
  fclose(file);
  return complete ? "" : path + " is shorter than the tensor";
}

}  // namespace

struct Tensors::Storage {
  Storage(ScalarType type, std::vector<int32_t> shape, const uint8_t* order) : sizes(std::move(shape)) {
    const size_t rank = sizes.size();
    dim_order.resize(rank);
    strides.resize(rank);
    for (size_t i = 0; i < rank; ++i) dim_order[i] = order != nullptr ? order[i] : static_cast<uint8_t>(i);
    bytes = executorch::runtime::elementSize(type);
    for (const int32_t size : sizes) bytes *= static_cast<size_t>(size);
    (void)executorch::runtime::dim_order_to_stride(sizes.data(), dim_order.data(), rank, strides.data());
  }
  Storage(const Storage&) = delete;
  ~Storage() { free(data); }

  std::vector<int32_t> sizes;
  std::vector<uint8_t> dim_order;
  std::vector<int32_t> strides;
  size_t bytes = 0;
  void* data = nullptr;
  std::unique_ptr<TensorImpl> tensor;
};

struct Tensors::Text {
  explicit Text(const std::string& value) : text(value), view(text.data(), text.size()) {}

  std::string text;
  executorch::aten::ArrayRef<char> view;
};

Tensors::Tensors() = default;
Tensors::~Tensors() = default;

Tensors::Storage* Tensors::add_storage(int dtype, const std::vector<int32_t>& sizes, const uint8_t* dim_order) {
  const auto type = static_cast<ScalarType>(dtype);
  Storage& storage = *storages_.emplace_back(std::make_unique<Storage>(type, sizes, dim_order));
  // Zeroed without touching a page. A kernel may read one element of an empty tensor's address.
  storage.data = calloc(1, storage.bytes > 0 ? storage.bytes : 1);
  if (storage.data == nullptr) return nullptr;
  storage.tensor = std::make_unique<TensorImpl>(type, static_cast<ssize_t>(sizes.size()), storage.sizes.data(),
                                                storage.data, storage.dim_order.data(), storage.strides.data());
  values_.emplace_back(Tensor(storage.tensor.get()));
  return &storage;
}

std::string Tensors::add_tensor(const Input& input, const MethodMeta& meta, bool touch) {
  const auto type = static_cast<ScalarType>(input.dtype);
  if (!executorch::runtime::isValid(type)) return "ExecuTorch has no dtype " + std::to_string(input.dtype);
  const auto info = meta.input_tensor_meta(values_.size());
  const bool same_rank = info.ok() && info->dim_order().size() == input.sizes.size();
  Storage* storage = add_storage(input.dtype, input.sizes, same_rank ? info->dim_order().data() : nullptr);
  if (storage == nullptr) return "out of memory";
  if (input.fill == Input::Fill::kFile) return read_file(storage->data, storage->bytes, input.text, input.offset);
  if (!touch) return "";
  if (input.fill == Input::Fill::kRandom)
    fill_random(storage->data, storage->bytes, type, input.seed);
  else
    memset(storage->data, 0, storage->bytes);
  return "";
}

std::string Tensors::add_input(const Input& input, const MethodMeta& meta, bool touch) {
  switch (input.kind) {
    case Input::Kind::kTensor:
      return add_tensor(input, meta, touch);
    case Input::Kind::kInt:
      values_.emplace_back(input.integer);
      return "";
    case Input::Kind::kBool:
      values_.emplace_back(input.integer != 0);
      return "";
    case Input::Kind::kDouble:
      values_.emplace_back(input.real);
      return "";
    case Input::Kind::kString:
      values_.emplace_back(&texts_.emplace_back(std::make_unique<Text>(input.text))->view);
      return "";
    case Input::Kind::kNone:
      values_.emplace_back();
      return "";
  }
  return "unknown kind";
}

std::string Tensors::make_inputs(const Run& run, const MethodMeta& meta, bool touch) {
  if (run.inputs.size() != meta.num_inputs()) {
    return run.method + " takes " + std::to_string(meta.num_inputs()) + " inputs, " +
           std::to_string(run.inputs.size()) + " given";
  }
  values_.reserve(run.inputs.size());
  for (const Input& input : run.inputs) {
    const size_t index = values_.size();
    const std::string error = add_input(input, meta, touch);
    if (!error.empty()) return "input " + std::to_string(index) + ": " + error;
    indices_.push_back(index);
  }
  return "";
}

std::string Tensors::make_outputs(const MethodMeta& meta, bool touch) {
  for (size_t i = 0; i < meta.num_outputs(); ++i) {
    const auto tag = meta.output_tag(i);
    if (!tag.ok() || *tag != executorch::runtime::Tag::Tensor) continue;
    const auto info = meta.output_tensor_meta(i);
    if (!info.ok() || info->is_memory_planned()) continue;
    const auto sizes = info->sizes();
    Storage* storage =
        add_storage(static_cast<int>(info->scalar_type()), {sizes.begin(), sizes.end()}, info->dim_order().data());
    if (storage == nullptr) return "output " + std::to_string(i) + ": out of memory";
    if (touch) memset(storage->data, 0, storage->bytes);
    indices_.push_back(i);
  }
  return "";
}

}  // namespace etmem::runner
