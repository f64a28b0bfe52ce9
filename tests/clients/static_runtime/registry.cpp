// A runtime that is linked statically, as small as the hooks need one: it stands where libexecutorch.a would, compiled
// against the installed headers. Its programs are text: planned bytes, then the backend that each instruction calls.
#include <executorch/runtime/backend/interface.h>

#include <cstring>

namespace executorch::runtime {

namespace {
Backend backends[4];
size_t count = 0;
}  // namespace

BackendInterface::~BackendInterface() {}

Error register_backend(const Backend& backend) {
  if (count == 4) return Error::Internal;
  backends[count++] = backend;
  return Error::Ok;
}

BackendInterface* get_backend_class(const char* name) {
  for (size_t i = 0; i < count; ++i) {
    if (std::strcmp(backends[i].name, name) == 0) return backends[i].backend;
  }
  return nullptr;
}

}  // namespace executorch::runtime
