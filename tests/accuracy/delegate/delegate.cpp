// A delegate that allocates what its blob says (tests/models/allocating.py), through every route that it is offered.
#include <dlfcn.h>
#include <executorch/runtime/backend/interface.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>

#include "etmem/etmem.h"

namespace {

using namespace executorch::runtime;

enum Stage : uint32_t { kInit, kExecute };
enum Route : uint32_t {
  kRuntimeAllocator,
  kTempAllocator,
  kMalloc,
  kCalloc,
  kRealloc,
  kPosixMemalign,
  kAlignedAlloc,
  kOperatorNew,
  kOperatorNewAligned,
  kMmap,
  kMremap,
  kThread,
};

struct Step {
  uint32_t stage;
  uint32_t route;
  uint64_t bytes;
  uint64_t kept;
  char category[40];
};
static_assert(sizeof(Step) == 64);

constexpr size_t kMostSteps = 32;
constexpr size_t kMostInstances = 64;

// In static storage: the handle itself is not an allocation.
struct Instance {
  Step steps[kMostSteps];
  void* held[kMostSteps];
  size_t count;
  bool taken;
};
Instance instances[kMostInstances];

const etmem_api* profiler() { return static_cast<const etmem_api*>(dlsym(RTLD_DEFAULT, "etmem_api_v1")); }

etmem_id begin_tag(const char* category) {
  const etmem_api* api = *category != 0 ? profiler() : nullptr;
  if (api == nullptr) return 0;
  const etmem_id name = api->string(category, std::strlen(category));
  return api->scope_begin(ETMEM_TAG, name, name, 0, 0);
}

void end_tag(etmem_id tag) {
  if (tag != 0) profiler()->scope_end(tag, 0);
}

void* map(size_t bytes) { return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }

// What a description may name: see the test that tells categories by call stack.
extern "C" __attribute__((noinline, visibility("default"))) void* allocate_weights(size_t bytes) {
  void* volatile p = std::malloc(bytes);
  return p;
}

// What a description may let a dry run answer instead.
extern "C" __attribute__((noinline, visibility("default"))) int compute_nothing(void* out, const void* in, size_t bytes) {
  std::memcpy(out, in, bytes);
  return 0;
}

// Volatile: no compiler may drop an allocation that nothing reads.
void* allocate_on(const Step& step) {
  void* volatile p = nullptr;
  void* aligned = nullptr;
  switch (step.route) {
    case kMalloc:
      p = allocate_weights(step.bytes);
      break;
    case kCalloc:
      p = std::calloc(step.bytes, 1);
      break;
    case kRealloc:
      p = std::realloc(std::malloc(step.bytes / 2), step.bytes);
      break;
    case kPosixMemalign:
      p = posix_memalign(&aligned, 64, step.bytes) == 0 ? aligned : nullptr;
      break;
    case kAlignedAlloc:
      p = std::aligned_alloc(64, step.bytes);
      break;
    case kOperatorNew:
      p = ::operator new(step.bytes);
      break;
    case kOperatorNewAligned:
      p = ::operator new(step.bytes, std::align_val_t{128});
      break;
    case kMmap:
      p = map(step.bytes);
      break;
    case kMremap:
      p = mremap(map(step.bytes / 2 & ~size_t{4095}), step.bytes / 2 & ~size_t{4095}, step.bytes, MREMAP_MAYMOVE);
      break;
    case kThread:
      std::thread([&] { p = std::malloc(step.bytes); }).join();
      break;
    default:
      break;
  }
  return p;
}

void release(const Step& step, void*& p) {
  switch (step.route) {
    case kOperatorNew:
      ::operator delete(p);
      break;
    case kOperatorNewAligned:
      ::operator delete(p, std::align_val_t{128});
      break;
    case kMmap:
    case kMremap:
      munmap(p, step.bytes);
      break;
    case kRuntimeAllocator:
    case kTempAllocator:
      break;
    default:
      std::free(p);
  }
  p = nullptr;
}

bool run_stage(Instance& instance, Stage stage, MemoryAllocator* allocator) {
  for (size_t i = 0; i < instance.count; ++i) {
    const Step& step = instance.steps[i];
    if (step.stage != stage || instance.held[i] != nullptr) continue;
    const etmem_id tag = begin_tag(step.category);
    const bool lent = step.route == kRuntimeAllocator || step.route == kTempAllocator;
    void* p = lent ? allocator->allocate(step.bytes) : allocate_on(step);
    end_tag(tag);
    if (p == nullptr) return false;
    std::memset(p, 1, step.bytes);
    instance.held[i] = p;
  }
  // Only now: all steps of a stage live at once.
  for (size_t i = 0; i < instance.count; ++i) {
    if (instance.steps[i].stage == stage && !instance.steps[i].kept) release(instance.steps[i], instance.held[i]);
  }
  return true;
}

class AllocatingBackend final : public BackendInterface {
 public:
  bool is_available() const override { return true; }

  Result<DelegateHandle*> init(BackendInitContext& context, FreeableBuffer* processed,
                               ArrayRef<CompileSpec>) const override {
    static uint32_t turn = 0;
    Instance& instance = instances[__atomic_fetch_add(&turn, 1, __ATOMIC_RELAXED) % kMostInstances];
    if (instance.taken) return Error::InvalidState;
    instance.taken = true;
    instance.count = processed->size() / sizeof(Step);
    if (instance.count > kMostSteps) return Error::InvalidProgram;
    std::memcpy(instance.steps, processed->data(), instance.count * sizeof(Step));
    processed->Free();
    if (!run_stage(instance, kInit, context.get_runtime_allocator())) return Error::MemoryAllocationFailed;
    return reinterpret_cast<DelegateHandle*>(&instance);
  }

  Error execute(BackendExecutionContext& context, DelegateHandle* handle, Span<EValue*> args) const override {
    Instance& instance = *reinterpret_cast<Instance*>(handle);
    if (!run_stage(instance, kExecute, context.get_temp_allocator())) return Error::MemoryAllocationFailed;
    const auto in = args[0]->toTensor();
    auto out = args[args.size() - 1]->toTensor();
    return compute_nothing(out.mutable_data_ptr(), in.const_data_ptr(), in.nbytes()) == 0 ? Error::Ok : Error::Internal;
  }

  void destroy(DelegateHandle* handle) const override {
    Instance& instance = *reinterpret_cast<Instance*>(handle);
    for (size_t i = 0; i < instance.count; ++i) {
      if (instance.held[i] != nullptr) release(instance.steps[i], instance.held[i]);
    }
    instance.taken = false;
  }
};

AllocatingBackend backend;
const Error registered = register_backend({"AllocatingBackend", &backend});

}  // namespace
