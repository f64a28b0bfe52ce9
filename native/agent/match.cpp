#include "match.h"

#include <stdlib.h>
#include <string.h>

#include "trace_format.h"

namespace {

using etmem::format::Event;

constexpr uint64_t kLive = UINT64_MAX;
constexpr uint64_t kAhead = 16;
constexpr uint64_t kNoRow = UINT64_MAX;
constexpr uint64_t kMaxStamp = uint64_t{1} << 62;
constexpr uint64_t kSizeMask = (uint64_t{1} << 48) - 1;

/* Size, kind and flags share a word: one load, where three bit fields are three. */
uint64_t packed_word(const Event& event) {
  uint64_t word;
  memcpy(&word, reinterpret_cast<const char*>(&event) + 16, sizeof word);
  return word;
}

bool is_known_kind(uint64_t kind) {
  return (kind >= etmem::format::kAlloc && kind <= etmem::format::kBreak) ||
         (kind >= etmem::format::kHeapAlloc && kind <= etmem::format::kHeapReset);
}

bool is_known_scope(uint32_t scope, const uint8_t* scopes, uint64_t count) {
  return scope == 0 || (scope < count && scopes[scope] != 0);
}

int check(uint64_t stamp, uint64_t address, uint64_t word) {
  const uint64_t kind = word >> 48 & 0xff;
  if (!is_known_kind(kind)) return ETMEM_READ_KIND;
  const uint64_t size = kind == etmem::format::kBreak ? 0 : word & kSizeMask;
  return stamp > kMaxStamp || address + size < address ? ETMEM_READ_RANGE : ETMEM_READ_OK;
}

/* Open addressing, linear probing, at most half full; erasing shifts back what it would cut off. */
class Table {
 public:
  struct Slot {
    uint64_t key;
    uint64_t value;  // plus one: zero marks a free slot
  };

  bool init(unsigned bits) {
    slots_ = static_cast<Slot*>(calloc(size_t{1} << bits, sizeof(Slot)));
    shift_ = 64 - bits;
    mask_ = (uint64_t{1} << bits) - 1;
    used_ = 0;
    return slots_ != nullptr;
  }
  void destroy() { free(slots_); }

  Slot* find(uint64_t key) const {
    for (uint64_t at = home(key); slots_[at].value != 0; at = (at + 1) & mask_) {
      if (slots_[at].key == key) return &slots_[at];
    }
    return nullptr;
  }

  /* The key must not be there. False without memory; the table is then as it was. */
  bool insert(uint64_t key, uint64_t value) {
    if (used_ > mask_ / 2 && !grow()) return false;
    place(key, value + 1);
    ++used_;
    return true;
  }

  /* Most of the time is waiting for a slot: asked for some events ahead, it is there. */
  void prefetch(uint64_t key) const { __builtin_prefetch(&slots_[home(key)], 1); }

  void erase(Slot* slot) {
    uint64_t hole = static_cast<uint64_t>(slot - slots_);
    for (uint64_t at = (hole + 1) & mask_; slots_[at].value != 0; at = (at + 1) & mask_) {
      if (((at - home(slots_[at].key)) & mask_) >= ((at - hole) & mask_)) {
        slots_[hole] = slots_[at];
        hole = at;
      }
    }
    slots_[hole].value = 0;
    --used_;
  }

 private:
  /* Two rounds: addresses chosen to collide under one multiplication would make each look-up a walk. */
  uint64_t home(uint64_t key) const {
    key *= 0x9e3779b97f4a7c15u;
    key ^= key >> 32;
    return key * 0xd6e8feb86659fd93u >> shift_;
  }

  void place(uint64_t key, uint64_t value) {
    uint64_t at = home(key);
    while (slots_[at].value != 0) at = (at + 1) & mask_;
    slots_[at] = {key, value};
  }

  bool grow() {
    Table bigger;
    if (!bigger.init(64 - shift_ + 1)) return false;
    for (uint64_t at = 0; at <= mask_; ++at) {
      if (slots_[at].value != 0) bigger.place(slots_[at].key, slots_[at].value);
    }
    bigger.used_ = used_;
    free(slots_);
    *this = bigger;
    return true;
  }

  Slot* slots_ = nullptr;
  uint64_t mask_ = 0;
  uint64_t used_ = 0;
  unsigned shift_ = 0;
};

/* What a kUndo of the thread may be about. Positions count events from 1; 0 is never. */
struct ThreadState {
  uint64_t freed_address, freed_row, freed_at;
  uint64_t unmapped_address, unmapped_at;
};

}  // namespace

struct EtmemMatch {
  Table live;     // address -> row
  Table threads;  // tid -> index into states
  ThreadState* states;
  uint64_t state_count, state_capacity;
  uint64_t position;

  ThreadState* state(uint32_t tid) {
    if (const Table::Slot* known = threads.find(tid)) return &states[known->value - 1];
    if (state_count == state_capacity) {
      const uint64_t capacity = state_capacity == 0 ? 64 : state_capacity * 2;
      void* grown = realloc(states, capacity * sizeof(ThreadState));
      if (grown == nullptr) return nullptr;
      states = static_cast<ThreadState*>(grown);
      state_capacity = capacity;
    }
    if (!threads.insert(tid, state_count)) return nullptr;
    states[state_count] = {};
    return &states[state_count++];
  }
};

namespace {

bool allocate(EtmemMatch& match, const EtmemColumns& in, uint64_t i, EtmemBlocks& out) {
  const uint64_t row = out.count;
  out.begin[row] = in.stamp[i];
  out.end[row] = kLive;
  out.address[row] = in.address[i];
  out.bytes[row] = in.size[i];
  out.scope[row] = in.scope[i];
  out.stack[row] = in.stack[i];
  out.thread[row] = in.thread[i];
  ++out.count;
  if (Table::Slot* old = match.live.find(in.address[i])) {
    out.end[old->value - 1] = in.stamp[i];
    old->value = row + 1;
    ++out.replaced_allocations;
    return true;
  }
  return match.live.insert(in.address[i], row);
}

void release(EtmemMatch& match, ThreadState& thread, uint64_t stamp, uint64_t address, EtmemBlocks& out) {
  thread.freed_address = address;
  thread.freed_at = match.position;
  thread.freed_row = kNoRow;
  Table::Slot* block = match.live.find(address);
  if (block == nullptr) {
    ++out.unmatched_frees;
    return;
  }
  thread.freed_row = block->value - 1;
  out.end[thread.freed_row] = stamp;
  match.live.erase(block);
}

/* Whether the kUndo is about the thread's last kFree; that one then never happened. */
bool undoes_free(const ThreadState& thread, uint64_t address) {
  if (thread.freed_at == 0 || thread.freed_address != address) return false;
  return thread.unmapped_address != address || thread.unmapped_at < thread.freed_at;
}

bool revive(EtmemMatch& match, ThreadState& thread, EtmemBlocks& out) {
  thread.freed_at = 0;
  if (thread.freed_row == kNoRow) {
    --out.unmatched_frees;
    return true;
  }
  if (match.live.find(thread.freed_address) != nullptr) return true;  // taken meanwhile: the free did happen
  out.end[thread.freed_row] = kLive;
  return match.live.insert(thread.freed_address, thread.freed_row);
}

}  // namespace

int etmem_read_survey(const void* records, const uint64_t* first, const uint64_t* last, uint64_t chunks,
                      const uint8_t* scopes, uint64_t scope_count, EtmemSurvey* survey) {
  const Event* events = static_cast<const Event*>(records);
  EtmemSurvey found = {0, UINT64_MAX, 0, 0, 0};
  for (uint64_t chunk = 0; chunk < chunks; ++chunk) {
    for (uint64_t slot = first[chunk]; slot < last[chunk]; ++slot) {
      const uint64_t stamp = events[slot].stamp;
      if (stamp == 0) continue;
      const int status = check(stamp, events[slot].address, packed_word(events[slot]));
      if (status != ETMEM_READ_OK) {
        survey->bad_slot = slot;
        return status;
      }
      ++found.events;
      if (stamp < found.first_stamp) found.first_stamp = stamp;
      if (stamp > found.last_stamp) found.last_stamp = stamp;
      if (!is_known_scope(events[slot].scope, scopes, scope_count)) ++found.unknown_scopes;
    }
  }
  if (found.events == 0) found.first_stamp = 0;
  *survey = found;
  return ETMEM_READ_OK;
}

int etmem_read_order(const void* records, const uint64_t* first, const uint64_t* last, uint64_t chunks,
                     EtmemSurvey* survey, uint32_t* order) {
  /* Stamps are nearly dense: putting each event at its stamp sorts them, whatever a signal handler mixed up. */
  const Event* events = static_cast<const Event*>(records);
  for (uint64_t chunk = 0; chunk < chunks; ++chunk) {
    for (uint64_t slot = first[chunk]; slot < last[chunk]; ++slot) {
      const uint64_t stamp = events[slot].stamp;
      if (stamp == 0) continue;
      /* The file may have grown since the survey: what came in later is not part of this reading. */
      if (stamp < survey->first_stamp || stamp > survey->last_stamp) continue;
      uint32_t& place = order[stamp - survey->first_stamp];
      if (place != 0) {
        survey->bad_slot = slot;
        return ETMEM_READ_DUPLICATE;
      }
      place = static_cast<uint32_t>(slot);
    }
  }
  uint64_t kept = 0;
  const uint64_t span = survey->events == 0 ? 0 : survey->last_stamp - survey->first_stamp + 1;
  for (uint64_t at = 0; at < span; ++at) {
    if (order[at] != 0) order[kept++] = order[at];
  }
  survey->events = kept;
  return ETMEM_READ_OK;
}

void etmem_read_columns(const void* records, const uint32_t* order, uint64_t count, const uint32_t* threads,
                        uint64_t slots_per_chunk, const uint8_t* scopes, uint64_t scope_count,
                        const EtmemColumns* columns) {
  const Event* events = static_cast<const Event*>(records);
  const EtmemColumns& out = *columns;
  uint64_t chunk = UINT64_MAX, begin = 0, end = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const uint32_t slot = order[i];
    const Event& event = events[slot];
    if (out.stamp) out.stamp[i] = event.stamp;
    if (out.address) out.address[i] = event.address;
    const uint64_t word = packed_word(event);
    if (out.size) out.size[i] = word & kSizeMask;
    if (out.kind) out.kind[i] = static_cast<uint8_t>(word >> 48);
    if (out.flags) out.flags[i] = static_cast<uint8_t>(word >> 56);
    if (out.scope) out.scope[i] = is_known_scope(event.scope, scopes, scope_count) ? event.scope : 0;
    if (out.stack) out.stack[i] = event.stack;
    if (out.thread) {
      if (slot < begin || slot >= end) {  // dividing for each event would cost as much as all the rest
        chunk = slot / slots_per_chunk;
        begin = chunk * slots_per_chunk;
        end = begin + slots_per_chunk;
      }
      out.thread[i] = threads[chunk];
    }
  }
}

EtmemMatch* etmem_match_new(void) {
  EtmemMatch* match = static_cast<EtmemMatch*>(calloc(1, sizeof(EtmemMatch)));
  if (match == nullptr) return nullptr;
  if (match->live.init(16) && match->threads.init(8)) return match;
  etmem_match_delete(match);
  return nullptr;
}

void etmem_match_delete(EtmemMatch* match) {
  if (match == nullptr) return;
  match->live.destroy();
  match->threads.destroy();
  free(match->states);
  free(match);
}

int etmem_match_feed(EtmemMatch* match, const EtmemColumns* columns, uint64_t count, EtmemBlocks* blocks,
                     uint8_t* undone) {
  const EtmemColumns& in = *columns;
  ThreadState* thread = nullptr;
  for (uint64_t i = 0; i < count; ++i) {
    ++match->position;
    if (i + kAhead < count) match->live.prefetch(in.address[i + kAhead]);
    const uint8_t kind = in.kind[i];
    if (kind == etmem::format::kAlloc) {
      if (blocks->count == blocks->capacity) return ETMEM_READ_CAPACITY;
      if (!allocate(*match, in, i, *blocks)) return ETMEM_READ_NO_MEMORY;
      continue;
    }
    if (kind != etmem::format::kFree && kind != etmem::format::kUnmap && kind != etmem::format::kUndo) continue;
    thread = match->state(in.thread[i]);
    if (thread == nullptr) return ETMEM_READ_NO_MEMORY;
    if (kind == etmem::format::kFree) {
      release(*match, *thread, in.stamp[i], in.address[i], *blocks);
    } else if (kind == etmem::format::kUnmap) {
      thread->unmapped_address = in.address[i];
      thread->unmapped_at = match->position;
    } else if (undoes_free(*thread, in.address[i])) {
      undone[i] = 1;
      if (!revive(*match, *thread, *blocks)) return ETMEM_READ_NO_MEMORY;
    }
  }
  return ETMEM_READ_OK;
}

uint64_t etmem_read_timeline(const uint64_t* begin, const uint64_t* end, const int64_t* weights, const uint8_t* wanted,
                             uint64_t count, uint64_t since, uint64_t until, uint64_t* stamps, int64_t* values) {
  /* values[1 + stamp - since] is what changes there; values[0] what is live before. Stamps are nearly dense. */
  for (uint64_t i = 0; i < count; ++i) {
    if (wanted[i] == 0 || end[i] <= since || begin[i] > until) continue;
    values[begin[i] <= since ? 0 : 1 + begin[i] - since] += weights[i];
    if (end[i] <= until) values[1 + end[i] - since] -= weights[i];
  }
  uint64_t kept = 1;
  int64_t live = values[0];
  stamps[0] = 0;
  for (uint64_t at = 1; at <= until - since + 1; ++at) {
    const int64_t change = values[at];
    if (change == 0) continue;
    live += change;
    stamps[kept] = since + at - 1;
    values[kept++] = live;
  }
  return kept;
}
