// The inputs of a method: tensors of ones.
#pragma once

#include <executorch/extension/tensor/tensor.h>
#include <executorch/runtime/executor/method_meta.h>

#include <vector>

class Ones {
 public:
  explicit Ones(const executorch::runtime::MethodMeta& meta) {
    for (size_t i = 0; i < meta.num_inputs(); ++i) {
      const auto sizes = meta.input_tensor_meta(i)->sizes();
      tensors_.push_back(executorch::extension::ones({sizes.begin(), sizes.end()}));
      values_.emplace_back(tensors_.back());
    }
  }
  Ones(const Ones&) = delete;
  Ones& operator=(const Ones&) = delete;

  const std::vector<executorch::runtime::EValue>& values() const { return values_; }

 private:
  // The values point to what the tensors hold.
  std::vector<executorch::extension::TensorPtr> tensors_;
  std::vector<executorch::runtime::EValue> values_;
};
