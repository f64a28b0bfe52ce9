/* The trace: a file that grows by chunks, each mapped shared while it is written. */
#pragma once

#include <stdint.h>

#include "trace_format.h"

namespace etmem::trace_file {

/* Creates the file and writes its header; stamps start anew. False, with errno, when that fails. `flags` are Status
 * bits. A trace that was open before is closed. */
bool open(const char* path, uint32_t flags);

/* The next chunk, mapped and zeroed after its ChunkHeader; nullptr when the file cannot grow (the disk is
 * full, the descriptor was closed and the path is gone): recording has then stopped and the header says so. */
format::ChunkHeader* next_chunk(format::ChunkKind kind, uint32_t thread);

/* Moves what is in a full chunk to one of its own, which is written and not mapped, and empties it. At any moment each
 * event is in one of them or, the same, in both; entries are all in the first until they are all in the second. False
 * when the file cannot grow. */
bool empty_chunk(format::ChunkHeader* chunk);

/* The live header; valid after open. */
format::Header& header();

/* Cuts what was allocated ahead and marks the file closed. */
void close();

/* One order over all threads, starting at 1. */
extern uint64_t g_stamp;
inline uint64_t next_stamp() { return __atomic_add_fetch(&g_stamp, 1, __ATOMIC_RELAXED); }

inline void count_drop() { __atomic_add_fetch(&header().dropped_events, 1, __ATOMIC_RELAXED); }

}  // namespace etmem::trace_file
