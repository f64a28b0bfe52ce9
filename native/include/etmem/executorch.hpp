/* Decorators for ExecuTorch's own extension points: each forwards to another and tells etmem what passes.
 *
 * Header-only over the ExecuTorch that the including file is compiled against. They never call malloc and change
 * nothing that the wrapped object returns. The hooks library (native/executorch) puts them into an unmodified
 * process; etmem/module.hpp puts them into an application of your own; a runner may use them one by one.
 */
#ifndef ETMEM_EXECUTORCH_HPP_
#define ETMEM_EXECUTORCH_HPP_

#if __has_include(<executorch/runtime/backend/interface.h>)  // not in the wheels before 1.3
#include <executorch/runtime/backend/interface.h>
#endif
#include <executorch/runtime/core/data_loader.h>
#if __has_include(<executorch/runtime/core/device_allocator.h>)
#include <executorch/runtime/core/device_allocator.h>
#define ETMEM_DEVICE_ALLOCATOR 1
#endif
#include <executorch/runtime/core/event_tracer.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>
#include <executorch/runtime/core/memory_allocator.h>
#include <executorch/runtime/core/named_data_map.h>
#include <sched.h>

#include <cstring>
#include <new>
#include <string_view>

#include "etmem/etmem.h"

namespace etmem {

namespace et = ::executorch::runtime;

/* The table of the profiler while it records, or nullptr. */
inline const etmem_api* api() { return etmem_active_(); }

inline etmem_id name_id(const char* text) {
  const etmem_api* table = api();
  return table != nullptr && text != nullptr ? table->string(text, std::strlen(text)) : 0;
}

#ifndef ETMEM_MAX_NAMES
#define ETMEM_MAX_NAMES 64  // of 64 bytes in each loaded method; a device with little memory sets less
#endif

/* Ids of names that come again and again. The text is kept and compared: what lies at an address may change. */
class NameCache {
 public:
  etmem_id id(const etmem_api* table, const char* text) {
    Entry& entry = entries_[(reinterpret_cast<uintptr_t>(text) >> 3) % kEntries];
    if (entry.id != 0 && std::strcmp(entry.text, text) == 0) return entry.id;
    const size_t length = std::strlen(text);
    const etmem_id id = table->string(text, length);
    if (length < sizeof entry.text) {
      std::memcpy(entry.text, text, length + 1);
      entry.id = id;
    }
    return id;
  }

 private:
  static constexpr size_t kEntries = ETMEM_MAX_NAMES;
  struct Entry {
    etmem_id id;
    char text[60];
  };
  Entry entries_[kEntries] = {};
};

class SpinLock {
 public:
  void lock() {
    while (__atomic_exchange_n(&held_, true, __ATOMIC_ACQUIRE)) sched_yield();
  }
  void unlock() { __atomic_store_n(&held_, false, __ATOMIC_RELEASE); }

 private:
  bool held_ = false;
};

class LockGuard {
 public:
  explicit LockGuard(SpinLock& lock) : lock_(lock) { lock_.lock(); }
  ~LockGuard() { lock_.unlock(); }
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;

 private:
  SpinLock& lock_;
};

/* Objects in the profiler's own memory, reused when released. */
template <typename T>
class Pool {
 public:
  template <typename... Args>
  T* make(Args&&... args) {
    void* place = nullptr;
    {
      LockGuard guard(lock_);
      if (free_ != nullptr) {
        place = free_;
        free_ = free_->next;
      }
    }
    const etmem_api* table = etmem_get_api();
    if (place == nullptr && table != nullptr) place = table->allocate(sizeof(Slot));
    return place == nullptr ? nullptr : new (place) T(static_cast<Args&&>(args)...);
  }
  void release(T* object) {
    object->~T();
    Slot* slot = reinterpret_cast<Slot*>(object);
    LockGuard guard(lock_);
    slot->next = free_;
    free_ = slot;
  }

 private:
  union Slot {
    Slot* next;
    alignas(T) unsigned char bytes[sizeof(T)];
  };
  SpinLock lock_;
  Slot* free_ = nullptr;
};

/* A scope for a C++ block. */
class Scope {
 public:
  Scope(uint32_t kind, etmem_id name, int64_t a, int64_t b, uint32_t flags = 0)
      : api_(api()), id_(api_ != nullptr ? api_->scope_begin(kind, name, a, b, flags) : 0) {}
  ~Scope() { end(false); }
  /* Ends it now; returns its id. */
  etmem_id end(bool failed) {
    const etmem_id id = id_;
    if (!ended_ && id != 0) api_->scope_end(id, failed);
    ended_ = true;
    return id;
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  const etmem_api* api_;
  etmem_id id_;
  bool ended_ = false;
};

/* A buffer that was handed out is recorded until it is freed. */
struct HeldBuffer {
  et::FreeableBuffer buffer;
  etmem_id segment;

  HeldBuffer(et::FreeableBuffer&& held, etmem_id id) : buffer(static_cast<et::FreeableBuffer&&>(held)), segment(id) {}

  static Pool<HeldBuffer>& pool() {
    static Pool<HeldBuffer> held;
    return held;
  }

  static void free(void* self, void*, size_t) {
    HeldBuffer* held = static_cast<HeldBuffer*>(self);
    const etmem_api* table = api();
    held->buffer.Free();
    if (table != nullptr) table->segment_free(held->segment);
    pool().release(held);
  }
};

/* Where a buffer is; nullptr where it is not in this address space. 1.0 has data() alone. */
template <typename Buffer>
auto address_of_buffer(const Buffer& buffer, int) -> decltype(buffer.data_safe(), static_cast<const void*>(nullptr)) {
  const auto data = buffer.data_safe();
  return data.ok() ? data.get() : nullptr;
}
template <typename Buffer>
const void* address_of_buffer(const Buffer& buffer, long) {
  return buffer.data();
}

/* Records a loaded buffer as a segment. Buffers that are not in this address space pass unchanged. */
inline et::Result<et::FreeableBuffer> hold(et::Result<et::FreeableBuffer>&& loaded, etmem_segment segment) {
  const etmem_api* table = api();
  if (table == nullptr || !loaded.ok()) return static_cast<et::Result<et::FreeableBuffer>&&>(loaded);
  const void* address = address_of_buffer(*loaded, 0);
  if (address == nullptr) return static_cast<et::Result<et::FreeableBuffer>&&>(loaded);
  const size_t bytes = loaded->size();
  segment.address = address;
  segment.bytes = bytes;
  const etmem_id id = table->segment(&segment);
  HeldBuffer* held = HeldBuffer::pool().make(static_cast<et::FreeableBuffer&&>(loaded.get()), id);
  if (held == nullptr) return et::Error::MemoryAllocationFailed;
  return et::FreeableBuffer(address, bytes, HeldBuffer::free, held);
}

class TracedDataLoader final : public et::DataLoader {
 public:
  TracedDataLoader(et::DataLoader* inner, uint32_t program) : inner_(inner), program_(program) {}

  et::Result<et::FreeableBuffer> load(size_t offset, size_t size, const SegmentInfo& info) const override {
    return hold(inner_->load(offset, size, info), describe(offset, info));
  }
  et::Error load_into(size_t offset, size_t size, const SegmentInfo& info, void* buffer) const override {
    return inner_->load_into(offset, size, info, buffer);
  }
  et::Result<size_t> size() const override { return inner_->size(); }

 private:
  etmem_segment describe(size_t offset, const SegmentInfo& info) const {
    etmem_segment segment = {};
    segment.offset = offset;
    segment.type = static_cast<uint32_t>(info.segment_type);
    segment.index = static_cast<uint32_t>(info.segment_index);
    segment.name = name_id(info.descriptor);
    segment.program = program_;
    return segment;
  }
  et::DataLoader* inner_;
  uint32_t program_;
};

/* The named data that one delegate asks for: its original weights, by key. */
class TracedNamedDataMap final : public et::NamedDataMap {
 public:
  static constexpr uint32_t kSegmentNamed = 16;

  TracedNamedDataMap(const et::NamedDataMap* inner, uint32_t program) : inner_(inner), program_(program) {}

  et::Result<const et::TensorLayout> get_tensor_layout(std::string_view key) const override {
    return inner_->get_tensor_layout(key);
  }
  et::Result<et::FreeableBuffer> get_data(std::string_view key) const override {
    etmem_segment segment = {};
    segment.type = kSegmentNamed;
    segment.program = program_;
    if (const etmem_api* table = api()) segment.name = table->string(key.data(), key.size());
    return hold(inner_->get_data(key), segment);
  }
  et::Error load_data_into(std::string_view key, void* buffer, size_t size) const override {
    return inner_->load_data_into(key, buffer, size);
  }
  et::Result<uint32_t> get_num_keys() const override { return inner_->get_num_keys(); }
  et::Result<const char*> get_key(uint32_t index) const override { return inner_->get_key(index); }

  const et::NamedDataMap* inner() const { return inner_; }
  uint32_t program() const { return program_; }

 private:
  const et::NamedDataMap* inner_;
  uint32_t program_;
};

/* What an allocator hands out, as a registered heap. */
class TracedMemoryAllocator final : public et::MemoryAllocator {
 public:
  TracedMemoryAllocator(et::MemoryAllocator* inner, const char* role)
      : et::MemoryAllocator(0, nullptr), inner_(inner), role_(role) {}

  void* allocate(size_t size, size_t alignment = kDefaultAlignment) override {
    void* block = inner_->allocate(size, alignment);
    const etmem_api* table = block != nullptr ? etmem_get_api() : nullptr;
    if (table == nullptr) return block;
    if (heap_ == 0 && table->recording()) {
      heap_ = table->heap_register(name_id(role_), name_id("executorch"), name_id(role_));
    }
    if (heap_ != 0) table->heap_alloc(heap_, block, size);  // which looks itself whether it records
    lent_ = heap_ != 0;
    return block;
  }
  uint8_t* base_address() const override { return inner_->base_address(); }
  uint32_t size() const override { return inner_->size(); }
  /* Virtual from 1.5 on; hiding them before that is harmless, and `override` would not compile there. */
#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Winconsistent-missing-override"
#endif
  size_t used_size() const { return used_of(inner_, 0); }
  size_t free_size() const { return free_of(inner_, 0); }
#if defined(__clang__)
#pragma clang diagnostic pop
#endif
  void reset() override {
    /* After every instruction, most of which asked for nothing. */
    if (const etmem_api* table = lent_ ? api() : nullptr) table->heap_reset(heap_);
    lent_ = false;
    inner_->reset();
  }

  et::MemoryAllocator* inner() const { return inner_; }

 private:
  template <typename A>
  static auto used_of(const A* a, int) -> decltype(a->used_size()) {
    return a->used_size();
  }
  template <typename A>
  static size_t used_of(const A*, long) {
    return 0;
  }
  template <typename A>
  static auto free_of(const A* a, int) -> decltype(a->free_size()) {
    return a->free_size();
  }
  template <typename A>
  static size_t free_of(const A*, long) {
    return 0;
  }
  et::MemoryAllocator* inner_;
  const char* role_;
  etmem_id heap_ = 0;  // registered when it first lends: it may be older than the recording
  bool lent_ = false;
};

#ifdef ETMEM_DEVICE_ALLOCATOR
/* What a device's allocator hands out, as a heap whose memory is not the host's. */
class TracedDeviceAllocator final : public et::DeviceAllocator {
 public:
  explicit TracedDeviceAllocator(et::DeviceAllocator* inner) : inner_(inner) {}

  et::Result<void*> allocate(size_t bytes, et::etensor::DeviceIndex index, size_t alignment) override {
    auto block = inner_->allocate(bytes, index, alignment);
    if (block.ok()) etmem_heap_alloc(&heap_, block.get(), bytes);
    return block;
  }
  void deallocate(void* block, et::etensor::DeviceIndex index) override {
    etmem_heap_free(&heap_, block);
    inner_->deallocate(block, index);
  }
  et::Error copy_host_to_device(void* to, const void* from, size_t bytes, et::etensor::DeviceIndex index) override {
    return inner_->copy_host_to_device(to, from, bytes, index);
  }
  et::Error copy_device_to_host(void* to, const void* from, size_t bytes, et::etensor::DeviceIndex index) override {
    return inner_->copy_device_to_host(to, from, bytes, index);
  }
  et::etensor::DeviceType device_type() const override { return inner_->device_type(); }

  et::DeviceAllocator* inner() const { return inner_; }

 private:
  et::DeviceAllocator* inner_;
  etmem_heap heap_ = ETMEM_DEVICE_HEAP(ETMEM_GPU_MEMORY, "device_allocator", "executorch", "planned_memory");
};
#endif

/* Opens a scope for each instruction and forwards everything to the application's tracer, if it has one. */
class TracedEventTracer : public et::EventTracer {
 public:
  explicit TracedEventTracer(et::EventTracer* inner) : inner_(inner) {}

  et::EventTracer* inner() const { return inner_; }

  /* Debug level, profiling level and bundled input are plain fields that the runtime reads from us: without the
   * copy all debug events of the application's tracer would be lost. Call it before each execute. */
  void copy_settings() {
    if (inner_ == nullptr) {
      /* Without an application's tracer the runtime's calls of log_evalue are ours: they tell the sizes of dynamic
       * tensors. Delegates are handed no tracer, so nothing in them is switched on. */
      const bool ask = settings_copied_ < kUsedRuns;
      if (ask) ++settings_copied_;
      set_event_tracer_debug_level(ask ? et::EventTracerDebugLogLevel::kIntermediateOutputs
                                       : et::EventTracerDebugLogLevel::kNoLogging);
      return;
    }
    set_event_tracer_debug_level(inner_->event_tracer_debug_level());
    set_event_tracer_profiling_level(inner_->event_tracer_profiling_level());
    set_bundled_input_index(inner_->bundled_input_index());
  }

  void create_event_block(const char* name) override {
    if (inner_ != nullptr) inner_->create_event_block(name);
  }
  et::EventTracerEntry start_profiling(const char* name, et::ChainID chain, et::DebugHandle handle) override {
    begin_instruction(name);
    if (inner_ == nullptr) return et::EventTracerEntry{};
    inner_->set_chain_debug_handle(current_chain_id(), current_debug_handle());
    return inner_->start_profiling(name, chain, handle);
  }
  void end_profiling(et::EventTracerEntry entry) override {
    if (inner_ != nullptr) inner_->end_profiling(entry);
    end_instruction();
  }
  et::EventTracerEntry start_profiling_delegate(const char* name, et::DelegateDebugIntId id) override {
    return inner_ != nullptr ? inner_->start_profiling_delegate(name, id) : et::EventTracerEntry{};
  }
  void end_profiling_delegate(et::EventTracerEntry entry, const void* metadata, size_t length) override {
    if (inner_ != nullptr) inner_->end_profiling_delegate(entry, metadata, length);
  }
  void log_profiling_delegate(const char* name, et::DelegateDebugIntId id, et_timestamp_t start, et_timestamp_t end,
                              const void* metadata, size_t length) override {
    if (inner_ != nullptr) inner_->log_profiling_delegate(name, id, start, end, metadata, length);
  }
  void track_allocation(et::AllocatorID id, size_t size) override {
    if (inner_ != nullptr) inner_->track_allocation(id, size);
  }
  et::AllocatorID track_allocator(const char* name) override {
    return inner_ != nullptr ? inner_->track_allocator(name) : 0;
  }
  et::Result<bool> log_evalue(const et::EValue& value, et::LoggedEValueType type) override {
    if (inner_ == nullptr) {
      record_used(value);
      return false;
    }
    inner_->set_chain_debug_handle(current_chain_id(), current_debug_handle());
    return inner_->log_evalue(value, type);
  }
  using Tensor = ::executorch::aten::Tensor;
  et::Result<bool> log_intermediate_output_delegate(const char* name, et::DelegateDebugIntId id,
                                                    const Tensor& output) override {
    return log_delegate_output(name, id, output);
  }
  et::Result<bool> log_intermediate_output_delegate(const char* name, et::DelegateDebugIntId id,
                                                    const et::ArrayRef<Tensor> output) override {
    return log_delegate_output(name, id, output);
  }
  et::Result<bool> log_intermediate_output_delegate(const char* name, et::DelegateDebugIntId id,
                                                    const int& output) override {
    return log_delegate_output(name, id, output);
  }
  et::Result<bool> log_intermediate_output_delegate(const char* name, et::DelegateDebugIntId id,
                                                    const bool& output) override {
    return log_delegate_output(name, id, output);
  }
  et::Result<bool> log_intermediate_output_delegate(const char* name, et::DelegateDebugIntId id,
                                                    const double& output) override {
    return log_delegate_output(name, id, output);
  }
  void set_delegation_intermediate_output_filter(et::EventTracerFilterBase* filter) override {
    if (inner_ != nullptr) inner_->set_delegation_intermediate_output_filter(filter);
  }

 private:
  template <typename T>
  et::Result<bool> log_delegate_output(const char* name, et::DelegateDebugIntId id, const T& output) {
    return inner_ != nullptr ? inner_->log_intermediate_output_delegate(name, id, output) : et::Result<bool>(false);
  }

  /* The runtime brackets each instruction with OPERATOR_CALL or DELEGATE_CALL, and kernels name themselves inside
   * as native_call_<op>. Begin and end come in pairs, so a stack of scope ids is enough. */
  void begin_instruction(const char* name) {
    const bool instruction = current_chain_id() != et::kUnsetChainId;
    const etmem_api* table = instruction && depth_ < kDepth ? api() : nullptr;
    const etmem_id scope = table == nullptr || name == nullptr
                               ? 0
                               : table->scope_begin(ETMEM_INSTRUCTION, names_.id(table, name), current_chain_id(),
                                                    current_debug_handle(), 0);
    if (depth_ < kDepth) scopes_[depth_] = scope;
    ++depth_;
  }
  void end_instruction() {
    if (depth_ == 0) return;
    --depth_;
    if (depth_ >= kDepth || scopes_[depth_] == 0) return;
    if (const etmem_api* table = etmem_get_api()) table->scope_end(scopes_[depth_], 0);
  }

  /* How much of its bound a dynamic tensor uses, as a claim without an owner: it changes no attribution. */
  static void record_used(const et::EValue& value) {
#ifndef USE_ATEN_LIB
    if (!value.isTensor()) return;
    const Tensor& tensor = value.toTensor();
    if (tensor.shape_dynamism() == et::TensorShapeDynamism::STATIC || tensor.const_data_ptr() == nullptr) return;
    /* Not nbytes(): libraries of before 1.3 do not export it. */
    const size_t bytes = static_cast<size_t>(tensor.numel()) * et::elementSize(tensor.scalar_type());
    const etmem_api* table = api();
    if (table == nullptr || bytes == 0) return;
    table->claim(tensor.const_data_ptr(), bytes, 0, 0, table->string("used", 4));
#else
    (void)value;
#endif
  }

  static constexpr uint32_t kDepth = 16;
  static constexpr uint32_t kUsedRuns = 16;  // a load and fifteen inferences: later shapes are rarely larger
  uint32_t settings_copied_ = 0;
  et::EventTracer* inner_;
  NameCache names_;
  etmem_id scopes_[kDepth] = {};
  uint32_t depth_ = 0;
};

}  // namespace etmem

#endif  // ETMEM_EXECUTORCH_HPP_
