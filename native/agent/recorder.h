/* Records events of the calling thread and entries of the side tables. Nothing here calls malloc. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "state.h"
#include "trace_file.h"
#include "trace_format.h"

namespace etmem::recorder {

/* Makes room in the thread's chunk and returns its first slot, or nullptr: the event is dropped. */
format::Event* refill();

/* A signal handler filled the chunk after the event's slot was taken: the record came too late to be moved with the
 * others, and would be written over. */
void record_again(format::Event* event);

/* The slot is taken with one instruction: a signal handler that allocates in between gets the next one. */
inline format::Event* take_slot() {
  format::Event* slot;
#if defined(__x86_64__)
  slot = reinterpret_cast<format::Event*>(sizeof(format::Event));
  __asm__ volatile("xadd %0, %1" : "+r"(slot), "+m"(t_state.cursor) : : "memory");
#else
  slot = reinterpret_cast<format::Event*>(
      __atomic_fetch_add(reinterpret_cast<uintptr_t*>(&t_state.cursor), sizeof(format::Event), __ATOMIC_RELAXED));
#endif
  return ETMEM_LIKELY(slot < t_state.end) ? slot : refill();
}

inline void write(uint64_t stamp, format::EventKind kind, uint8_t flags, const void* address, uint64_t size,
                  uint32_t stack) {
  format::Event* event = take_slot();
  if (ETMEM_UNLIKELY(event == nullptr)) return;
  event->address = reinterpret_cast<uint64_t>(address);
  *(&event->address + 1) =
      (size & 0xffffffffffffu) | static_cast<uint64_t>(kind) << 48 | static_cast<uint64_t>(flags) << 56;
  event->scope = t_state.scope;
  event->stack = stack;
  __atomic_store_n(&event->stamp, stamp, __ATOMIC_RELEASE);
  if (ETMEM_UNLIKELY(event >= t_state.cursor)) record_again(event);
}

/* True when the calling hook should record: this process records and the thread is not inside the agent. */
inline bool wanted() {
  if (!recording()) return false;
  if (ETMEM_LIKELY(t_state.busy == 0)) return true;
  trace_file::count_drop();
  return false;
}

inline void event(format::EventKind kind, uint8_t flags, const void* address, uint64_t size, uint32_t stack = 0) {
  write(trace_file::next_stamp(), kind, flags, address, size, stack);
}

/* One entry of the side tables: `fixed` then `tail`, padded to 8 bytes. False when it was dropped. */
bool meta(format::MetaType type, const void* fixed, size_t fixed_bytes, const void* tail = nullptr,
          size_t tail_bytes = 0, uint64_t stamp = 0);

template <typename T>
bool meta(format::MetaType type, const T& fixed, const void* tail = nullptr, size_t tail_bytes = 0,
          uint64_t stamp = 0) {
  return meta(type, &fixed, sizeof fixed, tail, tail_bytes, stamp);
}

/* The same for the calling thread's scopes, without a lock; the thread has a ScopeStack and is marked busy. */
bool scope_begin(const format::MetaScopeBegin& record);
bool scope_end(const format::MetaScopeEnd& record);

/* The largest tail of one entry. */
constexpr size_t kMaxTail = format::kChunkBytes - sizeof(format::ChunkHeader) - sizeof(format::MetaHeader) - 128;

uint32_t string(const char* text, size_t length);
uint32_t string(const char* text);

/* The id of the calling thread's stack, recorded once per distinct stack; 0 when it could not be taken. */
uint32_t stack();

/* A client's call that cannot be followed. */
void misuse(format::MisuseKind kind, uint32_t name, uint32_t scope = 0);

/* Prepares the side tables for a new trace. */
void begin_tables();

/* Makes the thread known, with its tid; called for each thread before its first record. */
void enter_thread(uint32_t parent, uint32_t parent_scope, uint64_t start_routine, bool existed_before);
void leave_thread();

}  // namespace etmem::recorder
