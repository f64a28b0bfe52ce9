/* A BackendInterface in front of a registered one: scopes for init, execute and destroy of every instance. */
#pragma once

#include <cstdlib>

#include "etmem/executorch.hpp"
#include "etmem/traced_method.hpp"

namespace etmem {

/* The instance number of each live delegate handle: a model has a few dozen. */
class Instances {
 public:
  void add(const void* handle, uint32_t instance) {
    Entry* fresh = pool_.make(Entry{handle, instance, nullptr});
    if (fresh == nullptr) return;
    LockGuard guard(lock_);
    fresh->next = first_;
    first_ = fresh;
  }
  /* -1 for a handle that was made before recording began. */
  int64_t find(const void* handle) {
    LockGuard guard(lock_);
    for (const Entry* e = first_; e != nullptr; e = e->next) {
      if (e->handle == handle) return static_cast<int64_t>(e->instance);
    }
    return -1;
  }
  void remove(const void* handle) {
    Entry* gone = nullptr;
    {
      LockGuard guard(lock_);
      for (Entry** at = &first_; *at != nullptr; at = &(*at)->next) {
        if ((*at)->handle != handle) continue;
        gone = *at;
        *at = gone->next;
        break;
      }
    }
    if (gone != nullptr) pool_.release(gone);
  }

 private:
  struct Entry {
    const void* handle;
    uint32_t instance;
    Entry* next;
  };
  SpinLock lock_;
  Entry* first_ = nullptr;
  Pool<Entry> pool_;
};

class TracedBackend final : public et::BackendInterface {
 public:
  /* The one decorator of a backend, made on first use; the backend itself when there is no memory for it. */
  static et::BackendInterface* around(et::BackendInterface* inner, const char* id) {
    static SpinLock lock;
    static TracedBackend* first = nullptr;
    LockGuard guard(lock);
    for (TracedBackend* b = first; b != nullptr; b = b->next_) {
      if (b->inner_ == inner) return b;
    }
    void* place = etmem_get_api()->allocate(sizeof(TracedBackend));
    if (place == nullptr) return inner;
    TracedBackend* fresh = new (place) TracedBackend(inner, id);
    fresh->next_ = first;
    first = fresh;
    return fresh;
  }

  /* Asked before each init; a backend may open its libraries here (OpenVINO does). */
  bool is_available() const override {
    if (t_loading == nullptr) return inner_->is_available();
    Scope scope(ETMEM_DELEGATE, name_, t_loading->delegates, 0, flags_ | ETMEM_NOTICE_MODULES);
    return inner_->is_available();
  }

  et::Result<et::DelegateHandle*> init(et::BackendInitContext& context, et::FreeableBuffer* processed,
                                       et::ArrayRef<et::CompileSpec> specs) const override {
    TracedMethod* method = t_loading;
    if (method == nullptr || api() == nullptr) return inner_->init(context, processed, specs);
    const uint32_t instance = method->delegates++;
    /* The application's tracer, not ours: handed one, XNNPACK allocates for its timings in every execute. */
    et::BackendInitContext rebuilt(context.get_runtime_allocator(), method->inner(), context.get_method_name(),
                                   traced_data(context.get_named_data_map(), method->program()),
                                   context.runtime_specs());
    Scope scope(ETMEM_DELEGATE, name_, instance, 0, flags_ | ETMEM_NOTICE_MODULES);
    auto handle = inner_->init(rebuilt, processed, specs);
    if (handle.ok()) instances().add(handle.get(), instance);
    scope.end(!handle.ok());
    return handle;
  }

  et::Error execute(et::BackendExecutionContext& context, et::DelegateHandle* handle,
                    et::Span<et::EValue*> args) const override {
    if (api() == nullptr && TracedMethod::find(context.event_tracer()) == nullptr) {
      return inner_->execute(context, handle, args);
    }
    TracedMethod* method = TracedMethod::find(context.event_tracer());
    et::BackendExecutionContext rebuilt(method != nullptr ? method->inner() : context.event_tracer(),
                                        context.get_temp_allocator(), context.get_method_name());
    Scope scope(ETMEM_DELEGATE, name_, instances().find(handle), 1, flags_);
    const et::Error error = inner_->execute(rebuilt, handle, args);
    scope.end(error != et::Error::Ok);
    return error;
  }

  et::Error set_option(et::BackendOptionContext& context, const et::Span<et::BackendOption>& options) override {
    return inner_->set_option(context, options);
  }
  et::Error get_option(et::BackendOptionContext& context, et::Span<et::BackendOption>& options) override {
    return inner_->get_option(context, options);
  }

  void destroy(et::DelegateHandle* handle) const override {
    Scope scope(ETMEM_DELEGATE, name_, instances().find(handle), 2, flags_);
    instances().remove(handle);
    inner_->destroy(handle);
  }

 private:
  TracedBackend(et::BackendInterface* inner, const char* id)
      : inner_(inner), name_(name_id(id)), flags_(asks_for_stacks(id) ? uint32_t{ETMEM_RECORD_STACKS} : 0u) {}

  /* ETMEM_STACKS lists the backends whose description tells categories by call stack. */
  static bool asks_for_stacks(const char* id) {
    const char* list = std::getenv("ETMEM_STACKS");
    const size_t length = std::strlen(id);
    for (const char* at = list; at != nullptr && *at != 0;) {
      const size_t item = std::strcspn(at, ",");
      if (item == length && std::strncmp(at, id, length) == 0) return true;
      at += item;
      if (*at == ',') ++at;
    }
    return false;
  }

  /* One decorator per underlying map: a backend may keep the pointer for as long as the method lives. */
  static const et::NamedDataMap* traced_data(const et::NamedDataMap* inner, uint32_t program) {
    struct Entry {
      TracedNamedDataMap map;
      Entry* next;
    };
    static SpinLock lock;
    static Entry* first = nullptr;
    if (inner == nullptr) return nullptr;
    LockGuard guard(lock);
    for (Entry* e = first; e != nullptr; e = e->next) {
      if (e->map.inner() == inner && e->map.program() == program) return &e->map;
    }
    void* place = etmem_get_api()->allocate(sizeof(Entry));
    if (place == nullptr) return inner;
    Entry* fresh = new (place) Entry{TracedNamedDataMap(inner, program), first};
    first = fresh;
    return &fresh->map;
  }

  static Instances& instances() {
    static Instances table;
    return table;
  }

  et::BackendInterface* inner_;
  etmem_id name_;
  uint32_t flags_;
  TracedBackend* next_ = nullptr;
};

}  // namespace etmem
