/* The caller's side of a method: input values made once per run, and memory for outputs that the program
 * did not plan. Every tensor is one malloc block of exactly its bytes, so that the profiler's
 * inputs_outputs is what an application would hold. */
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/executor/method_meta.h>

#include "plan.h"

namespace etmem::runner {

class Tensors {
 public:
  Tensors();
  Tensors(const Tensors&) = delete;
  Tensors& operator=(const Tensors&) = delete;
  ~Tensors();

  /* Makes the inputs of one run. `touch`: write every page, as an application would; a dry run does not.
   * Returns an empty string, or what is wrong and with which input. */
  std::string make_inputs(const Run& run, const executorch::runtime::MethodMeta& meta, bool touch);

  /* Makes a tensor for each output that has no memory of its own. */
  std::string make_outputs(const executorch::runtime::MethodMeta& meta, bool touch);

  const std::vector<executorch::runtime::EValue>& values() const { return values_; }
  /* Of values(): which input or output each one is. */
  const std::vector<size_t>& indices() const { return indices_; }

 private:
  struct Storage;
  struct Text;

  std::string add_input(const Input& input, const executorch::runtime::MethodMeta& meta, bool touch);
  std::string add_tensor(const Input& input, const executorch::runtime::MethodMeta& meta, bool touch);
  Storage* add_storage(int dtype, const std::vector<int32_t>& sizes, const uint8_t* dim_order);

  std::vector<executorch::runtime::EValue> values_;
  std::vector<size_t> indices_;
  // Values point into these.
  std::vector<std::unique_ptr<Storage>> storages_;
  std::vector<std::unique_ptr<Text>> texts_;
};

}  // namespace etmem::runner
