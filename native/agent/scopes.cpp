#include "scopes.h"

#include <errno.h>

#include "arena.h"
#include "etmem/etmem.h"
#include "observe.h"
#include "python_stack.h"
#include "recorder.h"
#include "system.h"

namespace etmem::scopes {

bool all_stacks;
uint32_t base_flags;
void (*on_edge)();

namespace {

uint32_t last_id;
uint32_t older;  // the last id of earlier traces

bool is_phase(uint32_t kind) { return kind >= format::kScopeProgramLoad && kind <= format::kScopeUnload; }

/* What the scope asks for, together with what the enclosing ones asked for. */
void refresh_top() {
  const uint32_t depth = t_state.depth;
  t_state.scope = depth == 0 ? 0 : t_state.scopes->frames[depth - 1].id;
  t_state.scope_flags = depth == 0 ? base_flags : t_state.scopes->frames[depth - 1].flags;
}

uint32_t enter(uint32_t kind, uint32_t name, int64_t a, int64_t b, uint32_t flags) {
  if (!recording()) return 0;
  Busy busy;
  if (!busy.entered) {
    trace_file::count_drop();
    return 0;
  }
  if (kind < format::kScopeProgramLoad || kind > format::kScopeProfiler) {
    recorder::misuse(format::kMisuseScopeKind, name);
    return 0;
  }
  if (t_state.tid == 0) recorder::enter_thread(0, 0, 0, true);
  if (t_state.scopes == nullptr) t_state.scopes = arena::allocate_array<ScopeStack>(1);
  if (t_state.scopes == nullptr || t_state.depth == kScopeDepth) {
    trace_file::count_drop();
    return 0;
  }
  const uint32_t id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
  const uint32_t parent = t_state.scope;
  if (is_phase(kind)) observe::rss(format::kRssPhaseBegin, id);
  if (flags & ETMEM_NOTICE_MODULES) observe::modules(0);  // what is there already is not this scope's
  const format::MetaScopeBegin record = {id, parent, kind, name, t_state.tid, flags, a, b, sys::now_ns()};
  if (!recorder::scope_begin(record)) return 0;
  constexpr uint32_t kInherited = ETMEM_RECORD_STACKS | ETMEM_RECORD_FREES;
  uint32_t inherited = t_state.scope_flags & kInherited;
  if (all_stacks) inherited |= ETMEM_RECORD_STACKS;
  if (kind == format::kScopeProfiler) inherited = 0;
  t_state.scopes->frames[t_state.depth++] = {id, flags | inherited, kind};
  refresh_top();
  return id;
}

void tell_edge() {
  void (*told)() = __atomic_load_n(&on_edge, __ATOMIC_ACQUIRE);
  if (told == nullptr || t_state.busy != 0) return;
  const uint32_t own = enter(format::kScopeProfiler, recorder::string("sources"), 0, 0, 0);
  if (own == 0) return;
  const int saved = errno;
  told();
  errno = saved;
  end(own, false);
}

bool is_open_phase(uint32_t scope) {
  for (uint32_t at = t_state.depth; at > 0; --at) {
    if (t_state.scopes->frames[at - 1].id == scope) return is_phase(t_state.scopes->frames[at - 1].kind);
  }
  return false;
}

}  // namespace

void begin_trace() { older = __atomic_load_n(&last_id, __ATOMIC_RELAXED); }

uint32_t thread_storage() {
  static uint32_t scope, trace;
  static SpinLock lock;
  Guard guard(lock);
  if (trace != *g_switch) {
    trace = *g_switch;
    scope = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
    const format::MetaScopeBegin record = {
        scope, 0, format::kScopeTag, recorder::string("thread-local storage"), t_state.tid, 0, 0, 0, sys::now_ns()};
    recorder::meta(format::kMetaScopeBegin, record);
  }
  return scope;
}

uint32_t begin(uint32_t kind, uint32_t name, int64_t a, int64_t b, uint32_t flags) {
  if (is_phase(kind)) tell_edge();
  const uint32_t id = enter(kind, name, a, b, flags);
  if (all_stacks && id != 0 && is_phase(kind)) {
    const uint32_t own = enter(format::kScopeProfiler, 0, 0, 0, 0);
    python_stack::record(id);
    end(own, false);
  }
  return id;
}

void end(uint32_t scope, bool failed) {
  if (scope == 0) return;
  if (on_edge != nullptr && is_open_phase(scope)) tell_edge();
  Busy busy;
  if (!busy.entered) return;
  uint32_t at = t_state.depth;
  while (at > 0 && t_state.scopes->frames[at - 1].id != scope) --at;
  if (at == 0) {  // begun on another thread, or ended already; those of an earlier trace end there
    if (recording() && scope > older) recorder::misuse(format::kMisuseScopeEnd, 0, scope);
    return;
  }
  while (t_state.depth >= at) {
    const ScopeFrame frame = t_state.scopes->frames[t_state.depth - 1];
    if (recording()) {
      if (frame.id != scope) recorder::misuse(format::kMisuseScopeOpen, 0, frame.id);
      if (frame.flags & ETMEM_NOTICE_MODULES) observe::modules(frame.id);
      if (is_phase(frame.kind)) observe::rss(format::kRssPhaseEnd, frame.id);
      recorder::scope_end({frame.id, failed ? 1u : 0u, sys::now_ns()});
    }
    --t_state.depth;
  }
  refresh_top();
}

}  // namespace etmem::scopes
