/* The calling thread's stack of scopes. */
#pragma once

#include <stdint.h>

namespace etmem::scopes {

/* Every scope but the profiler's own records call stacks. */
extern bool all_stacks;

/* What a thread outside of all scopes records. */
extern uint32_t base_flags;

/* Called on a phase's thread before it begins and as the last thing in it; nullptr: nobody asks. What it allocates is
 * the profiler's. */
extern void (*on_edge)();

/* Scopes that are open now are an earlier trace's. */
void begin_trace();

/* Memory of a thread that the loader makes when it is first wanted (thread-local storage of a library opened at run
 * time). When that is depends on how a thread pool shares out its work, so it belongs to no phase. */
uint32_t thread_storage();

/* 0 when not recording, or too deep. A phase's beginning and end also take an RSS sample. */
uint32_t begin(uint32_t kind, uint32_t name, int64_t a, int64_t b, uint32_t flags);

/* Ends the scope and, should the caller have lost some, those inside it. */
void end(uint32_t scope, bool failed);

}  // namespace etmem::scopes
