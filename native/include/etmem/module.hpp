/* One call that traces a Module: build a TracedModule where you built a Module. It is one in every respect. */
#ifndef ETMEM_MODULE_HPP_
#define ETMEM_MODULE_HPP_

#include <executorch/extension/module/module.h>

#include <utility>

#include "etmem/wrap.hpp"

namespace etmem {

class TracedModule final : public ::executorch::extension::Module {
 public:
  template <typename... Arguments>
  explicit TracedModule(Arguments&&... arguments)
      : ::executorch::extension::Module(std::forward<Arguments>(arguments)...) {
    trace_runtime();
  }
};

}  // namespace etmem

#endif  // ETMEM_MODULE_HPP_
