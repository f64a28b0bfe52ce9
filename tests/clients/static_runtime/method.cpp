// Method of the static test runtime: one delegate, which it calls once in an inference.
#include <executorch/runtime/backend/interface.h>
#include <executorch/runtime/executor/memory_manager.h>
#include <executorch/runtime/executor/method.h>
#include <executorch/runtime/executor/program.h>

#include <cstring>

namespace executorch::runtime {

namespace testing {
class ProgramTestFriend {
 public:
  static const char* text(const Program& program) {
    return reinterpret_cast<const char*>(program.get_internal_program());
  }
};
}  // namespace testing

namespace {

struct Delegate {
  BackendInterface* backend;
  DelegateHandle* handle;
};

Delegate* as_delegate(void* delegates) { return static_cast<Delegate*>(delegates); }

}  // namespace

Result<Method> Method::load(executorch_flatbuffer::ExecutionPlan*, const Program* program, MemoryManager* memory,
                            EventTracer* tracer, const NamedDataMap* data, const LoadBackendOptionsMap* options,
                            Span<const Kernel> kernels) {
  Method method(program, memory, tracer, memory->temp_allocator(), kernels);
  const Error error = method.init(nullptr, data, options);
  if (error != Error::Ok) return error;
  return method;
}

Error Method::init(executorch_flatbuffer::ExecutionPlan*, const NamedDataMap* data, const LoadBackendOptionsMap*) {
  const char* name = std::strchr(testing::ProgramTestFriend::text(*program_), ' ');
  MemoryAllocator* allocator = memory_manager_->method_allocator();
  void* place = allocator->allocate(sizeof(Delegate));
  if (name == nullptr || place == nullptr) return Error::InvalidProgram;
  BackendInterface* backend = get_backend_class(name + 1);
  if (backend == nullptr || !backend->is_available()) return Error::NotFound;
  FreeableBuffer blob;
  BackendInitContext context(allocator, event_tracer_, "forward", data);
  auto handle = backend->init(context, &blob, ArrayRef<CompileSpec>());
  if (!handle.ok()) return handle.error();
  delegates_ = reinterpret_cast<BackendDelegate*>(new (place) Delegate{backend, handle.get()});
  n_delegate_ = 1;
  init_state_ = InitializationState::Initialized;
  return Error::Ok;
}

Error Method::execute() {
  Delegate* delegate = as_delegate(delegates_);
  if (event_tracer_ != nullptr) event_tracer_->set_chain_debug_handle(0, 0);
  EventTracerEntry entry{};
  if (event_tracer_ != nullptr) entry = event_tracer_->start_profiling("DELEGATE_CALL", 0, 0);
  BackendExecutionContext context(event_tracer_, temp_allocator_, "forward");
  const Error error = delegate->backend->execute(context, delegate->handle, Span<EValue*>());
  if (event_tracer_ != nullptr) event_tracer_->end_profiling(entry);
  if (temp_allocator_ != nullptr) temp_allocator_->reset();
  return error;
}

Error Method::set_input(const EValue&, size_t) { return Error::Ok; }
Error Method::set_output_data_ptr(void*, size_t, size_t) { return Error::Ok; }
EventTracer* Method::get_event_tracer() { return event_tracer_; }
MethodMeta Method::method_meta() const { return program_->method_meta("forward").get(); }

Method::~Method() {
  if (n_delegate_ == 1 && delegates_ != nullptr) {
    as_delegate(delegates_)->backend->destroy(as_delegate(delegates_)->handle);
  }
}

}  // namespace executorch::runtime
