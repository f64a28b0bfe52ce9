/* Reading a trace fast: the order of its events, their columns, and which free ends which allocation.
 *
 * For whoever reads a trace (Python, by ctypes), never for the process that records one. Plain C, no state
 * between calls except EtmemMatch. src/etmem/trace/model.py is the same in Python, and the test of it.
 */
#ifndef ETMEM_MATCH_H_
#define ETMEM_MATCH_H_

#include <stdint.h>

#define ETMEM_EXPORT __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

enum EtmemReadStatus {
  ETMEM_READ_OK = 0,
  ETMEM_READ_NO_MEMORY = 1,
  ETMEM_READ_KIND = 2,      /* an event of unknown kind */
  ETMEM_READ_RANGE = 3,     /* address + size runs over the address space, or a stamp that is no stamp */
  ETMEM_READ_DUPLICATE = 4, /* two events with one stamp */
  ETMEM_READ_CAPACITY = 5   /* more allocations than rows to put them in */
};

/* What the events are, before they are put in order. */
struct EtmemSurvey {
  uint64_t events;
  uint64_t first_stamp, last_stamp;
  uint64_t unknown_scopes; /* events in a scope that `scopes` does not know */
  uint64_t bad_slot;       /* of the event that a status other than OK is about */
};

/* Slots count 32-byte records from the end of the file's header. A chunk's events are in
 * [first[i], last[i]); those with stamp 0 were never written. scopes[id] is 1 for a known scope. */
ETMEM_EXPORT int etmem_read_survey(const void* records, const uint64_t* first, const uint64_t* last, uint64_t chunks,
                                   const uint8_t* scopes, uint64_t scope_count, struct EtmemSurvey* survey);

/* The slots of all events by stamp, in order[0, survey->events). `order` has room for
 * last_stamp - first_stamp + 1 and is zero; slot 0 is a chunk's header, so 0 means none. */
ETMEM_EXPORT int etmem_read_order(const void* records, const uint64_t* first, const uint64_t* last, uint64_t chunks,
                                  struct EtmemSurvey* survey, uint32_t* order);

/* Columns of `count` events; a column that is NULL is not wanted. */
struct EtmemColumns {
  uint64_t* stamp;
  uint8_t* kind;
  uint8_t* flags;
  uint64_t* address;
  uint64_t* size;
  uint32_t* scope;
  uint32_t* stack;
  uint32_t* thread;
};

/* order[0, count) are slots; threads[slot / slots_per_chunk] is the chunk's. Unknown scopes become 0. */
ETMEM_EXPORT void etmem_read_columns(const void* records, const uint32_t* order, uint64_t count,
                                     const uint32_t* threads, uint64_t slots_per_chunk, const uint8_t* scopes,
                                     uint64_t scope_count, const struct EtmemColumns* columns);

/* One row per allocation, by begin; or, after etmem_match_fold, one for several that nobody can tell apart. */
struct EtmemBlocks {
  uint64_t* begin;
  uint64_t* end; /* UINT64_MAX while live */
  uint64_t* address;
  uint64_t* bytes;
  uint32_t* scope;
  uint32_t* stack;
  uint32_t* thread;
  uint32_t* freed_scope;  /* of its kFree */
  uint32_t* freed_thread; /* 0 where no kFree ended it */
  uint32_t* folded;       /* the folded blocks that it stands for; 0 for a block with a row of its own */
  uint8_t* function;      /* flags of its kAlloc */
  uint64_t capacity;
  uint64_t count;
  uint64_t unmatched_frees;
  uint64_t replaced_allocations;
  uint64_t last_gone; /* the last stamp of a block that was folded or left out, 0 for none */
};

/* Folded blocks, by begin: live from begin[i] up to begin[i] + life[i], in all else alike rows[i] of EtmemBlocks. */
struct EtmemFolded {
  uint64_t* begin;
  uint32_t* life;
  uint32_t* row;
  uint64_t capacity;
  uint64_t count;
};

struct EtmemMatch;

ETMEM_EXPORT struct EtmemMatch* etmem_match_new(void); /* NULL without memory */
ETMEM_EXPORT void etmem_match_delete(struct EtmemMatch* match);

/* Before the first event. Blocks that are live at no edge (one of `edges`, which are sorted and stay where they are, a
 * multiple of ETMEM_FOLD_STAMPS, a kHeapAlloc) are folded: those between two edges with equal columns, of addresses in
 * one 64 MiB, are one row, the first of them, and each is an entry of `folded`. What ended by `since` is left out. */
#define ETMEM_FOLD_STAMPS (1u << 20)
ETMEM_EXPORT void etmem_match_fold(struct EtmemMatch* match, const uint64_t* edges, uint64_t count, uint64_t since,
                                   struct EtmemFolded* folded);

/* Goes on with the next events in stamp order. undone[i] becomes 1 where event i is a kUndo of a kFree; those of a
 * kUnmap are left to the caller. */
ETMEM_EXPORT int etmem_match_feed(struct EtmemMatch* match, const struct EtmemColumns* columns, uint64_t count,
                                  struct EtmemBlocks* blocks, uint8_t* undone);

/* After the last event: the rows are complete. */
ETMEM_EXPORT int etmem_match_finish(struct EtmemMatch* match, struct EtmemBlocks* blocks);

/* What is live from begin[i] up to end[i] with weights[i], of rows where wanted[i] is not 0; those that stand for
 * folded blocks count as often as `folded` has them, and not themselves. */
struct EtmemLive {
  const uint64_t* begin;
  const uint64_t* end;
  const int64_t* weights;
  const uint8_t* wanted;
  const uint32_t* folded_count; /* may be NULL, as may folded: none is */
  uint64_t count;
  const struct EtmemFolded* folded;
};

/* Live weight over stamps, right for those in [since, until]. The first of the stamps written is 0; a value holds until
 * the next stamp, and no two neighbours are equal. With `bins` (sorted, may be NULL) only the first, lowest, highest
 * and last of the values that begin between two of them, each the earliest of its kind. Room: for 4 * (bins + 1) + 1
 * values; without bins, for twice the blocks and 1. Returns how many there are, 0 without memory. */
ETMEM_EXPORT uint64_t etmem_read_timeline(const struct EtmemLive* live, const uint64_t* bins, uint64_t bin_count,
                                          uint64_t since, uint64_t until, uint64_t* stamps, int64_t* values);

/* Bytes in planes (all first bytes of `count` numbers, all second bytes, ...) as numbers of `width` bytes; with `steps`
 * they are zigzagged differences, and the numbers their sums. */
ETMEM_EXPORT void etmem_read_planes(const uint8_t* planes, uint64_t count, uint32_t width, int steps, void* out);

#ifdef __cplusplus
}
#endif
#endif /* ETMEM_MATCH_H_ */
