/* What every part of the agent shares: the on-switch, the thread's state, the spin lock. */
#pragma once

#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>

#include "trace_format.h"

namespace etmem {

#define ETMEM_LIKELY(x) __builtin_expect(!!(x), 1)
#define ETMEM_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define ETMEM_EXPORT __attribute__((visibility("default")))

struct ScopeFrame {
  uint32_t id;
  uint32_t flags;
  uint32_t kind;
};

constexpr uint32_t kScopeDepth = 128;

/* Room for entries of the side tables, in a mapped chunk. */
struct MetaRoom {
  char* cursor;
  char* end;
};

/* A thread's open scopes, and a chunk of its own for their beginnings and ends: no other thread is waited for. */
struct ScopeStack {
  ScopeFrame frames[kScopeDepth];
  MetaRoom room;
};

/* A thread's own state. Trivially destructible and at most 64 bytes: a TLS destructor or a large initial-exec
 * block would break malloc at thread exit, or dlopen late in a process with many TLS users. */
struct ThreadState {
  format::Event* cursor;  // the next record; records past `end` go to a new chunk
  format::Event* end;
  ScopeStack* scopes;  // from the agent's arena
  uint32_t scope;      // innermost scope id
  uint32_t scope_flags;
  uint32_t depth;  // frames in use; may exceed kScopeDepth, whose scopes are then not entered
  uint32_t tid;
  uint32_t busy;       // inside the agent: a hook reached now (by a signal handler) drops its event
  uint32_t in_malloc;  // inside libc's malloc: an mmap reached now is another allocator's, not a block
  uint32_t started;    // 1: by a pthread_create that we saw
  uint32_t trace;      // the trace that the fields above belong to; of an older one they are forgotten
};
static_assert(sizeof(ThreadState) <= 64);

/* Not thread_local, whose users elsewhere ask at each access whether it is to be constructed. */
extern __thread ThreadState t_state __attribute__((tls_model("initial-exec")));

/* The number of the trace being recorded, 1 for the first of the process; 0 while none is. It lies in a page that
 * the kernel wipes in a forked child, so that a child never writes into its parent's trace, whichever way it was
 * forked. */
extern volatile uint32_t* g_switch;

/* Forgets what the thread knew of an earlier trace: its chunk, its scopes, that it is known by name. */
void begin_trace(uint32_t trace);

inline bool recording() {
  const uint32_t trace = *g_switch;
  if (ETMEM_UNLIKELY(trace != t_state.trace && trace != 0)) begin_trace(trace);
  return trace != 0;
}

/* Held for a few stores only, never while libc or the unwinder runs. A thread takes it with `busy` set, so a
 * signal handler of the same thread cannot come here a second time. */
class SpinLock {
 public:
  void lock() {
    while (__atomic_exchange_n(&held_, 1, __ATOMIC_ACQUIRE) != 0) sched_yield();
  }
  void unlock() { __atomic_store_n(&held_, 0, __ATOMIC_RELEASE); }

 private:
  uint32_t held_ = 0;
};

class Guard {
 public:
  explicit Guard(SpinLock& lock) : lock_(lock) { lock_.lock(); }
  ~Guard() { lock_.unlock(); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  SpinLock& lock_;
};

/* Marks the thread as inside the agent. `entered` is false when it already was: the caller drops its work. */
class Busy {
 public:
  Busy() : entered(t_state.busy == 0), errno_(errno) { ++t_state.busy; }
  ~Busy() {
    --t_state.busy;
    errno = errno_;
  }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;
  const bool entered;

 private:
  const int errno_;
};

}  // namespace etmem
