#include "match.h"

#include <stdlib.h>

#include "address_table.h"
#include "trace_format.h"

namespace {

constexpr uint64_t kLive = UINT64_MAX;
constexpr uint64_t kAhead = 16;
constexpr uint64_t kNoRow = UINT64_MAX;
constexpr uint32_t kNobody = 0;      /* no thread's state has this index */
constexpr unsigned kRegionBits = 26; /* glibc's arenas begin at multiples of 64 MiB: each keeps a row that lies in it */

/* What a kUndo of the thread may be about. Positions count events from 1; 0 is never. */
struct ThreadState {
  uint64_t freed_address, freed_row, freed_at;
  uint64_t unmapped_address, unmapped_at;
  uint32_t tid;
};

/* The rows of one interval that stand for folded blocks, found by their columns. */
class FoldedRows {
 public:
  bool init(unsigned bits) {
    slots_ = static_cast<Slot*>(calloc(size_t{1} << bits, sizeof(Slot)));
    mask_ = (uint64_t{1} << bits) - 1;
    used_ = 0;
    generation_ = 1;
    return slots_ != nullptr;
  }
  void destroy() { free(slots_); }
  void clear() {
    used_ = 0;
    if (++generation_ != 0) return;
    for (uint64_t at = 0; at <= mask_; ++at) slots_[at].generation = 0;
    generation_ = 1;
  }

  /* The row that is like `row`; `row` itself, from now on, where there is none yet. kNoRow without memory. */
  uint64_t like(const EtmemBlocks& blocks, uint64_t row) {
    if (used_ > mask_ / 2 && !grow(blocks)) return kNoRow;
    for (uint64_t at = hash(blocks, row) & mask_;; at = (at + 1) & mask_) {
      Slot& slot = slots_[at];
      if (slot.generation != generation_) {
        slot = {static_cast<uint32_t>(row), generation_};
        ++used_;
        return row;
      }
      if (alike(blocks, slot.row, row)) return slot.row;
    }
  }

 private:
  struct Slot {
    uint32_t row;
    uint32_t generation; /* of another interval: a free slot */
  };

  static bool alike(const EtmemBlocks& b, uint64_t one, uint64_t other) {
    return b.bytes[one] == b.bytes[other] && b.scope[one] == b.scope[other] && b.stack[one] == b.stack[other] &&
           b.thread[one] == b.thread[other] && b.function[one] == b.function[other] &&
           b.freed_scope[one] == b.freed_scope[other] && b.freed_thread[one] == b.freed_thread[other] &&
           b.address[one] >> kRegionBits == b.address[other] >> kRegionBits;
  }

  static uint64_t hash(const EtmemBlocks& b, uint64_t row) {
    uint64_t key = b.bytes[row] * 0x9e3779b97f4a7c15u;
    key = (key ^ b.scope[row] ^ uint64_t{b.stack[row]} << 32) * 0xd6e8feb86659fd93u;
    key = (key ^ key >> 32 ^ b.thread[row] ^ uint64_t{b.freed_scope[row]} << 32) * 0x9e3779b97f4a7c15u;
    key = (key ^ key >> 32 ^ b.address[row] >> kRegionBits ^ uint64_t{b.freed_thread[row]} << 40) * 0xd6e8feb86659fd93u;
    return (key ^ b.function[row]) >> 20;
  }

  bool grow(const EtmemBlocks& blocks) {
    FoldedRows bigger;
    bigger.slots_ = static_cast<Slot*>(calloc((mask_ + 1) * 2, sizeof(Slot)));
    if (bigger.slots_ == nullptr) return false;
    bigger.mask_ = mask_ * 2 + 1;
    bigger.generation_ = 1;
    for (uint64_t at = 0; at <= mask_; ++at) {
      if (slots_[at].generation == generation_) bigger.like(blocks, slots_[at].row);
    }
    free(slots_);
    *this = bigger;
    return true;
  }

  Slot* slots_ = nullptr;
  uint64_t mask_ = 0;
  uint64_t used_ = 0;
  uint32_t generation_ = 1;
};

}  // namespace

struct EtmemMatch {
  etmem::AddressTable live;     // address -> row
  etmem::AddressTable threads;  // tid -> index into states
  ThreadState* states;          // the first is nobody's
  uint64_t state_count, state_capacity;
  uint64_t position;

  EtmemFolded* folded; /* NULL: every block has a row of its own */
  FoldedRows rows;
  const uint64_t* edges;
  uint64_t edge_count, edge;
  uint64_t since;
  uint64_t next_edge;    // the first that no event has passed
  uint64_t first_fresh;  // the first row of the interval that is going on

  uint32_t state(uint32_t tid) {
    if (const etmem::AddressTable::Slot* known = threads.find(tid)) return static_cast<uint32_t>(known->value - 1);
    if (state_count == state_capacity) {
      const uint64_t capacity = state_capacity == 0 ? 64 : state_capacity * 2;
      void* grown = realloc(states, capacity * sizeof(ThreadState));
      if (grown == nullptr) return kNobody;
      states = static_cast<ThreadState*>(grown);
      state_capacity = capacity;
      if (state_count == 0) states[state_count++] = {};
    }
    if (!threads.insert(tid, state_count)) return kNobody;
    states[state_count] = {};
    states[state_count].freed_row = kNoRow;
    states[state_count].tid = tid;
    return static_cast<uint32_t>(state_count++);
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
  out.freed_scope[row] = 0;
  out.freed_thread[row] = kNobody;
  out.folded[row] = 0;
  out.function[row] = in.flags[i];
  ++out.count;
  if (etmem::AddressTable::Slot* old = match.live.find(in.address[i])) {
    out.end[old->value - 1] = in.stamp[i];
    old->value = row + 1;
    ++out.replaced_allocations;
    return true;
  }
  return match.live.insert(in.address[i], row);
}

void release(EtmemMatch& match, uint32_t by, const EtmemColumns& in, uint64_t i, EtmemBlocks& out) {
  ThreadState& thread = match.states[by];
  thread.freed_address = in.address[i];
  thread.freed_at = match.position;
  thread.freed_row = kNoRow;
  etmem::AddressTable::Slot* block = match.live.find(in.address[i]);
  if (block == nullptr) {
    ++out.unmatched_frees;
    return;
  }
  const uint64_t row = block->value - 1;
  thread.freed_row = row;
  out.end[row] = in.stamp[i];
  out.freed_scope[row] = in.scope[i];
  out.freed_thread[row] = by;
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
  out.freed_scope[thread.freed_row] = 0;
  out.freed_thread[thread.freed_row] = kNobody;
  return match.live.insert(thread.freed_address, thread.freed_row);
}

bool can_be_undone(const EtmemMatch& match, const EtmemBlocks& out, uint64_t row) {
  const uint32_t by = out.freed_thread[row];
  return by != kNobody && match.states[by].freed_row == row && match.states[by].freed_at != 0;
}

void move(EtmemMatch& match, EtmemBlocks& out, uint64_t from, uint64_t to) {
  if (from == to) return;
  out.begin[to] = out.begin[from];
  out.end[to] = out.end[from];
  out.address[to] = out.address[from];
  out.bytes[to] = out.bytes[from];
  out.scope[to] = out.scope[from];
  out.stack[to] = out.stack[from];
  out.thread[to] = out.thread[from];
  out.freed_scope[to] = out.freed_scope[from];
  out.freed_thread[to] = out.freed_thread[from];
  out.folded[to] = out.folded[from];
  out.function[to] = out.function[from];
  if (out.end[to] == kLive) {
    match.live.find(out.address[to])->value = to + 1;
  } else if (can_be_undone(match, out, from)) {
    match.states[out.freed_thread[to]].freed_row = to;
  }
}

/* At an edge: folds what began and ended since the last one, and closes the gaps. */
int fold(EtmemMatch& match, EtmemBlocks& out, uint64_t first) {
  match.rows.clear();
  EtmemFolded& folded = *match.folded;
  uint64_t kept = first;
  for (uint64_t row = first; row < out.count; ++row) {
    const uint64_t end = out.end[row];
    if (end == kLive || can_be_undone(match, out, row)) {
      move(match, out, row, kept++);
      continue;
    }
    if (end > out.last_gone) out.last_gone = end;
    if (end <= match.since) continue;
    if (folded.count == folded.capacity || kept > UINT32_MAX) return ETMEM_READ_CAPACITY;
    move(match, out, row, kept);
    const uint64_t like = match.rows.like(out, kept);
    if (like == kNoRow) return ETMEM_READ_NO_MEMORY;
    folded.begin[folded.count] = out.begin[kept];
    folded.life[folded.count] = static_cast<uint32_t>(end - out.begin[kept]);
    folded.row[folded.count++] = static_cast<uint32_t>(like);
    ++out.folded[like];
    if (like == kept) ++kept;
  }
  out.count = kept;
  match.first_fresh = kept;
  return ETMEM_READ_OK;
}

/* An event of a later stamp than the edge: what was live at the edge is known. */
int pass_edges(EtmemMatch& match, uint64_t stamp, EtmemBlocks& out) {
  const bool passes_since = match.next_edge <= match.since && stamp > match.since;
  /* Before `since` blocks that outlived an edge got rows. They go when it is passed: none of them was folded. */
  const int status = fold(match, out, passes_since ? 0 : match.first_fresh);
  while (match.edge < match.edge_count && match.edges[match.edge] < stamp) ++match.edge;
  match.next_edge = (stamp + ETMEM_FOLD_STAMPS - 1) / ETMEM_FOLD_STAMPS * ETMEM_FOLD_STAMPS;
  if (match.edge < match.edge_count && match.edges[match.edge] < match.next_edge) {
    match.next_edge = match.edges[match.edge];
  }
  return status;
}

}  // namespace

EtmemMatch* etmem_match_new(void) {
  EtmemMatch* match = static_cast<EtmemMatch*>(calloc(1, sizeof(EtmemMatch)));
  if (match == nullptr) return nullptr;
  match->next_edge = UINT64_MAX;
  if (match->live.init(16) && match->threads.init(8) && match->rows.init(10)) return match;
  etmem_match_delete(match);
  return nullptr;
}

void etmem_match_delete(EtmemMatch* match) {
  if (match == nullptr) return;
  match->live.destroy();
  match->threads.destroy();
  match->rows.destroy();
  free(match->states);
  free(match);
}

void etmem_match_fold(EtmemMatch* match, const uint64_t* edges, uint64_t count, uint64_t since, EtmemFolded* folded) {
  match->folded = folded;
  match->edges = edges;
  match->edge_count = count;
  match->since = since;
  match->next_edge = 0;
}

int etmem_match_feed(EtmemMatch* match, const EtmemColumns* columns, uint64_t count, EtmemBlocks* blocks,
                     uint8_t* undone) {
  const EtmemColumns& in = *columns;
  for (uint64_t i = 0; i < count; ++i) {
    ++match->position;
    if (i + kAhead < count) match->live.prefetch(in.address[i + kAhead]);
    const uint8_t kind = in.kind[i];
    const bool is_edge = kind == etmem::format::kHeapAlloc && match->folded != nullptr;
    if (in.stamp[i] > match->next_edge || is_edge) {
      const int status = pass_edges(*match, in.stamp[i], *blocks);
      if (status != ETMEM_READ_OK) return status;
    }
    if (kind == etmem::format::kAlloc) {
      if (blocks->count == blocks->capacity) return ETMEM_READ_CAPACITY;
      if (!allocate(*match, in, i, *blocks)) return ETMEM_READ_NO_MEMORY;
      continue;
    }
    if (kind != etmem::format::kFree && kind != etmem::format::kUnmap && kind != etmem::format::kUndo) continue;
    const uint32_t by = match->state(in.thread[i]);
    if (by == kNobody) return ETMEM_READ_NO_MEMORY;
    ThreadState& thread = match->states[by];
    if (kind == etmem::format::kFree) {
      release(*match, by, in, i, *blocks);
    } else if (kind == etmem::format::kUnmap) {
      thread.unmapped_address = in.address[i];
      thread.unmapped_at = match->position;
    } else if (undoes_free(thread, in.address[i])) {
      undone[i] = 1;
      if (!revive(*match, thread, *blocks)) return ETMEM_READ_NO_MEMORY;
    }
  }
  return ETMEM_READ_OK;
}

int etmem_match_finish(EtmemMatch* match, EtmemBlocks* blocks) {
  if (match->folded != nullptr) {
    for (uint64_t i = 1; i < match->state_count; ++i) match->states[i].freed_at = 0; /* nothing undoes any more */
    const int status = pass_edges(*match, UINT64_MAX - ETMEM_FOLD_STAMPS, *blocks);
    if (status != ETMEM_READ_OK) return status;
  }
  for (uint64_t row = 0; row < blocks->count; ++row) {
    const uint32_t by = blocks->freed_thread[row];
    if (by != kNobody) blocks->freed_thread[row] = match->states[by].tid;
  }
  return ETMEM_READ_OK;
}
