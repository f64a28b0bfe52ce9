// The backend of tests/models' unknown_backend: it leaks 1,000 bytes in each init and keeps one block for good.
#include <executorch/runtime/backend/interface.h>

#include <cstdlib>

namespace {

using namespace executorch::runtime;

void* kept;
int handle;

}  // namespace

extern "C" __attribute__((noinline, visibility("default"))) void* lose_a_block() {
  void* volatile block = std::malloc(1000);
  return block;
}

namespace {

class Leaking final : public BackendInterface {
 public:
  bool is_available() const override { return true; }

  Result<DelegateHandle*> init(BackendInitContext&, FreeableBuffer* processed, ArrayRef<CompileSpec>) const override {
    if (kept == nullptr) kept = std::malloc(2000);
    lose_a_block();
    processed->Free();
    return &handle;
  }

  Error execute(BackendExecutionContext&, DelegateHandle*, Span<EValue*>) const override { return Error::Ok; }

  void destroy(DelegateHandle*) const override {}
};

Leaking backend;
const auto registered = register_backend({"NoSuchBackend", &backend});

}  // namespace
