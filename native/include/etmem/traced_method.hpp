/* What the hooks know of a loaded method. It is the tracer that the method was given, so the method leads to it. */
#pragma once

#include "etmem/executorch.hpp"

namespace etmem {

inline void append_number(char* out, uint64_t value) {
  char digits[20];
  size_t n = 0;
  do {
    digits[n++] = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value != 0);
  out += std::strlen(out);
  while (n > 0) *out++ = digits[--n];
  *out = 0;
}

class TracedMethod final : public TracedEventTracer {
 public:
  TracedMethod(et::EventTracer* application, uint32_t program, etmem_id name)
      : TracedEventTracer(application), program_(program), name_(name) {}

  static TracedMethod* make(et::EventTracer* application, uint32_t program, etmem_id name) {
    void* place = etmem_get_api()->allocate(sizeof(TracedMethod));
    if (place == nullptr) return nullptr;
    TracedMethod* method = new (place) TracedMethod(application, program, name);
    LockGuard guard(lock());
    method->next_ = first();
    first() = method;
    return method;
  }

  /* nullptr for a tracer that is not ours, or whose method has ended. */
  static TracedMethod* find(const et::EventTracer* tracer) {
    if (tracer == nullptr) return nullptr;
    LockGuard guard(lock());
    for (TracedMethod* m = first(); m != nullptr; m = m->next_) {
      if (static_cast<const et::EventTracer*>(m) == tracer) return m;
    }
    return nullptr;
  }

  /* Its method is gone. The memory stays: a stray call must not meet a destroyed object. */
  void end() {
    LockGuard guard(lock());
    for (TracedMethod** at = &first(); *at != nullptr; at = &(*at)->next_) {
      if (*at == this) {
        *at = next_;
        return;
      }
    }
  }

  /* An inference ended: pages are counted after the first and the last one. */
  void ended(uint64_t iteration, etmem_id inference) {
    last_inference = inference;
    const etmem_api* table = api();
    if (table == nullptr) return;
    /* Where nobody said how many there are, after the second too, in case it is the last. */
    const uint64_t left = table->remaining_inferences();
    snapshot_taken = iteration == 0 || left == 1 || (left == 0 && iteration == 1);
    if (snapshot_taken) table->snapshot(name_id("inference"), inference);
  }

  void before_unload() const {
    const etmem_api* table = api();
    if (table != nullptr && !snapshot_taken && iterations > 0) table->snapshot(name_id("unload"), last_inference);
  }

  uint32_t program() const { return program_; }
  etmem_id name() const { return name_; }

  uint32_t delegates = 0;  // initialised so far: the next one's index in the method's delegate table
  uint64_t iterations = 0;
  etmem_id last_inference = 0;
  bool snapshot_taken = false;

 private:
  static SpinLock& lock() {
    static SpinLock held;
    return held;
  }
  static TracedMethod*& first() {
    static TracedMethod* method = nullptr;
    return method;
  }
  uint32_t program_;
  etmem_id name_;
  TracedMethod* next_ = nullptr;
};

/* The method that this thread is loading. */
inline thread_local TracedMethod* t_loading __attribute__((tls_model("initial-exec"))) = nullptr;

}  // namespace etmem
