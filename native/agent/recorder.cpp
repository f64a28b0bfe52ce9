#include "recorder.h"

#include <string.h>

#include "arena.h"
#include "call_stack.h"
#include "scopes.h"
#include "system.h"

namespace etmem {

__thread ThreadState t_state __attribute__((tls_model("initial-exec")));

void begin_trace(uint32_t trace) {
  t_state.cursor = nullptr;  // the old chunk stays mapped: another thread may be writing its own to the last
  t_state.end = nullptr;
  t_state.tid = 0;
  t_state.depth = 0;
  t_state.scope = 0;
  t_state.scope_flags = scopes::base_flags;
  t_state.trace = trace;
  if (t_state.scopes != nullptr) t_state.scopes->room = {};
}

namespace recorder {
namespace {

using format::ChunkHeader;
using format::Event;
using format::kChunkBytes;
using format::MetaHeader;

SpinLock meta_lock;
MetaRoom meta_room;

constexpr uint32_t kStrings = 1 << 14;
constexpr uint32_t kStacks = 1 << 16;

struct StringSlot {
  uint64_t hash;
  const char* text;
  uint32_t length;
  uint32_t id;
};
struct StackSlot {
  uint64_t hash;
  uint32_t id;
};

SpinLock table_lock;
StringSlot* strings;
uint32_t string_count;
StackSlot* stacks;
uint32_t stack_count;
bool stacks_full_said;
uint32_t misuses;

uint64_t mix(uint64_t a, uint64_t b) {
  const __uint128_t product = static_cast<__uint128_t>(a ^ 0x9e3779b97f4a7c15u) * (b ^ 0xbf58476d1ce4e5b9u);
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

uint64_t hash_bytes(const char* text, size_t length) {
  uint64_t h = length;
  while (length >= 8) {
    uint64_t word;
    memcpy(&word, text, 8);
    h = mix(h, word);
    text += 8;
    length -= 8;
  }
  uint64_t last = 0;
  memcpy(&last, text, length);
  return mix(h, last) | 1;  // 0 marks a free slot
}

char* take(MetaRoom& room, size_t bytes) {
  if (room.cursor == nullptr) {
    ChunkHeader* chunk = trace_file::next_chunk(format::kMeta, 0);
    if (chunk == nullptr) return nullptr;
    room.cursor = reinterpret_cast<char*>(chunk + 1);
    room.end = reinterpret_cast<char*>(chunk) + kChunkBytes;
  } else if (static_cast<size_t>(room.end - room.cursor) < bytes) {
    ChunkHeader* full = reinterpret_cast<ChunkHeader*>(room.end - kChunkBytes);
    if (!trace_file::empty_chunk(full)) return nullptr;
    room.cursor = reinterpret_cast<char*>(full + 1);
  }
  char* at = room.cursor;
  room.cursor += bytes;
  /* What the chunk held before it was emptied must not be read as what follows this entry. */
  if (static_cast<size_t>(room.end - room.cursor) >= sizeof(MetaHeader)) {
    reinterpret_cast<MetaHeader*>(room.cursor)->type = 0;
  }
  return at;
}

bool write_meta(MetaRoom& room, format::MetaType type, const void* fixed, size_t fixed_bytes, const void* tail,
                size_t tail_bytes, uint64_t stamp) {
  const size_t bytes = (sizeof(MetaHeader) + fixed_bytes + tail_bytes + 7) & ~size_t{7};
  char* at = take(room, bytes);
  if (at == nullptr) {
    trace_file::count_drop();
    return false;
  }
  MetaHeader* entry = reinterpret_cast<MetaHeader*>(at);
  entry->bytes = static_cast<uint32_t>(bytes);
  entry->stamp = stamp != 0 ? stamp : trace_file::next_stamp();
  memcpy(at + sizeof(MetaHeader), fixed, fixed_bytes);
  if (tail_bytes != 0) memcpy(at + sizeof(MetaHeader) + fixed_bytes, tail, tail_bytes);
  __atomic_store_n(&entry->type, type, __ATOMIC_RELEASE);
  return true;
}

}  // namespace

namespace {

ChunkHeader* own_chunk() { return reinterpret_cast<ChunkHeader*>(reinterpret_cast<char*>(t_state.end) - kChunkBytes); }

}  // namespace

Event* refill() {
  Busy busy;
  ChunkHeader* chunk = nullptr;
  if (busy.entered && recording()) {
    if (t_state.tid == 0) enter_thread(0, 0, 0, true);
    if (t_state.end == nullptr) {
      chunk = trace_file::next_chunk(format::kEvents, t_state.tid);
    } else if (trace_file::empty_chunk(own_chunk())) {
      chunk = own_chunk();
    }
  }
  if (chunk == nullptr) {
    t_state.cursor = t_state.end;  // taken past the end: back, or it would wrap around in the end
    trace_file::count_drop();
    return nullptr;
  }
  Event* first = reinterpret_cast<Event*>(chunk + 1);
  t_state.end = reinterpret_cast<Event*>(reinterpret_cast<char*>(chunk) + kChunkBytes);
  t_state.cursor = first + 1;
  return first;
}

void record_again(Event* event) {
  if (t_state.end == nullptr || event >= t_state.end || reinterpret_cast<ChunkHeader*>(event) < own_chunk()) return;
  const Event copy = *event;
  event->stamp = 0;
  Event* slot = take_slot();
  if (slot == nullptr) return;
  memcpy(&slot->address, &copy.address, sizeof copy - sizeof copy.stamp);
  __atomic_store_n(&slot->stamp, copy.stamp, __ATOMIC_RELEASE);
}

bool meta(format::MetaType type, const void* fixed, size_t fixed_bytes, const void* tail, size_t tail_bytes,
          uint64_t stamp) {
  Busy busy;  // whoever may run in a signal handler has asked `wanted` or `Busy::entered` before it comes here
  Guard guard(meta_lock);
  return write_meta(meta_room, type, fixed, fixed_bytes, tail, tail_bytes, stamp);
}

bool scope_begin(const format::MetaScopeBegin& record) {
  return write_meta(t_state.scopes->room, format::kMetaScopeBegin, &record, sizeof record, nullptr, 0, 0);
}

bool scope_end(const format::MetaScopeEnd& record) {
  return write_meta(t_state.scopes->room, format::kMetaScopeEnd, &record, sizeof record, nullptr, 0, 0);
}

uint32_t string(const char* text, size_t length) {
  if (text == nullptr || length == 0 || !recording()) return 0;  // an id that no trace has would be a broken one
  Busy busy;
  if (length > kMaxTail) length = kMaxTail;
  const uint64_t hash = hash_bytes(text, length);
  uint32_t id = 0;
  {
    Guard guard(table_lock);
    if (strings == nullptr) strings = arena::allocate_array<StringSlot>(kStrings);
    if (strings == nullptr) return 0;
    uint32_t at = static_cast<uint32_t>(hash >> 32) % kStrings;
    for (; strings[at].hash != 0; at = (at + 1) % kStrings) {
      const StringSlot& slot = strings[at];
      if (slot.hash == hash && slot.length == length && memcmp(slot.text, text, length) == 0) return slot.id;
    }
    if (string_count >= kStrings * 3 / 4) return 0;
    char* copy = static_cast<char*>(arena::allocate(length));
    if (copy == nullptr) return 0;
    memcpy(copy, text, length);
    id = ++string_count;
    strings[at] = {hash, copy, static_cast<uint32_t>(length), id};
  }
  meta(format::kMetaString, format::MetaString{id, static_cast<uint32_t>(length)}, text, length);
  return id;
}

void misuse(format::MisuseKind kind, uint32_t name, uint32_t scope) {
  if (__atomic_fetch_add(&misuses, 1, __ATOMIC_RELAXED) >= format::kMisuses) return;
  meta(format::kMetaMisuse, format::MetaMisuse{kind, name, scope, t_state.tid});
}

/* Clients keep ids of strings across traces, so a new trace starts with all of them; nobody keeps those of stacks. */
void begin_tables() {
  Busy busy;
  misuses = 0;
  {
    Guard guard(meta_lock);
    meta_room = {};
  }
  {
    Guard guard(table_lock);
    if (stacks != nullptr) memset(stacks, 0, sizeof(StackSlot) * kStacks);
    stack_count = 0;
    stacks_full_said = false;
  }
  for (uint32_t at = 0; strings != nullptr && at < kStrings; ++at) {
    const StringSlot slot = strings[at];
    if (slot.hash == 0) continue;
    meta(format::kMetaString, format::MetaString{slot.id, slot.length}, slot.text, slot.length);
  }
}

uint32_t string(const char* text) { return text == nullptr ? 0 : string(text, strlen(text)); }

/* The slot of a stack, or the free one where it belongs. */
StackSlot* stack_slot(uint64_t hash) {
  uint32_t at = static_cast<uint32_t>(hash >> 32) % kStacks;
  for (;; at = (at + 1) % kStacks) {
    const uint64_t held = __atomic_load_n(&stacks[at].hash, __ATOMIC_ACQUIRE);
    if (held == hash || held == 0) return &stacks[at];
  }
}

/* Once: what is allocated from here on by other ways has no stack. */
void say_stacks_full() {
  if (__atomic_exchange_n(&stacks_full_said, true, __ATOMIC_RELAXED)) return;
  const uint32_t text = string("more than 49152 different call stacks: allocations with further ones have none");
  meta(format::kMetaNote, format::MetaNote{string("issue.call_stacks_full"), text});
}

uint32_t stack() {
  Busy busy;
  if (!busy.entered) return 0;
  call_stack::Frames frames;
  call_stack::walk(frames);
  if (frames.count == 0) return 0;
  const size_t bytes = frames.count * sizeof *frames.address;
  const uint64_t hash = hash_bytes(reinterpret_cast<const char*>(frames.address), bytes);
  if (ETMEM_LIKELY(__atomic_load_n(&stacks, __ATOMIC_ACQUIRE) != nullptr)) {
    const StackSlot* known = stack_slot(hash);
    if (known->hash != 0) return known->id;
  }
  uint32_t id = 0;
  {
    Guard guard(table_lock);
    if (stacks == nullptr) __atomic_store_n(&stacks, arena::allocate_array<StackSlot>(kStacks), __ATOMIC_RELEASE);
    if (stacks == nullptr) return 0;
    StackSlot* slot = stack_slot(hash);
    if (slot->hash != 0) return slot->id;
    if (stack_count < kStacks * 3 / 4) {
      id = ++stack_count;
      slot->id = id;
      __atomic_store_n(&slot->hash, hash, __ATOMIC_RELEASE);  // last: others read without the lock
    }
  }
  if (id == 0) {
    say_stacks_full();
    return 0;
  }
  meta(format::kMetaStack, format::MetaStack{id, static_cast<uint32_t>(frames.count)}, frames.address, bytes);
  return id;
}

void enter_thread(uint32_t parent, uint32_t parent_scope, uint64_t start_routine, bool existed_before) {
  t_state.tid = sys::tid();
  const format::MetaThread thread = {t_state.tid,   parent,
                                     parent_scope,  existed_before ? 1u : 0u,
                                     start_routine, reinterpret_cast<uint64_t>(__builtin_frame_address(0)),
                                     sys::now_ns()};
  meta(format::kMetaThread, thread);
}

void leave_thread() {
  if (!recording() || t_state.tid == 0) return;
  meta(format::kMetaThreadEnd, format::MetaThreadEnd{t_state.tid, 0});
}

}  // namespace recorder
}  // namespace etmem
