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

/* One row per allocation, by begin. */
struct EtmemBlocks {
  uint64_t* begin;
  uint64_t* end; /* UINT64_MAX while live */
  uint64_t* address;
  uint64_t* bytes;
  uint32_t* scope;
  uint32_t* stack;
  uint32_t* thread;
  uint64_t capacity;
  uint64_t count;
  uint64_t unmatched_frees;
  uint64_t replaced_allocations;
};

struct EtmemMatch;

ETMEM_EXPORT struct EtmemMatch* etmem_match_new(void); /* NULL without memory */
ETMEM_EXPORT void etmem_match_delete(struct EtmemMatch* match);

/* Goes on with the next events in stamp order; `columns` has all but flags. undone[i] becomes 1 where
 * event i is a kUndo of a kFree; those of a kUnmap are left to the caller. */
ETMEM_EXPORT int etmem_match_feed(struct EtmemMatch* match, const struct EtmemColumns* columns, uint64_t count,
                                  struct EtmemBlocks* blocks, uint8_t* undone);

/* Live weight over stamps: +weights[i] from begin[i] on, -weights[i] from end[i] on, of the rows where wanted[i] is not
 * 0. Right for stamps in [since, until]. stamps and values have room for until - since + 2 and `values` is zero.
 * Returns how many of them there are: the first is of stamp 0 and holds until the next, and so on; no two neighbours
 * are equal. */
ETMEM_EXPORT uint64_t etmem_read_timeline(const uint64_t* begin, const uint64_t* end, const int64_t* weights,
                                          const uint8_t* wanted, uint64_t count, uint64_t since, uint64_t until,
                                          uint64_t* stamps, int64_t* values);

#ifdef __cplusplus
}
#endif
#endif /* ETMEM_MATCH_H_ */
