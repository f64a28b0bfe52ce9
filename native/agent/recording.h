/* The beginning and the end of a trace. */
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace etmem {

/* Mirrored by src/etmem/capture/attached.py. */
struct recording_options {
  uint32_t status;   // Status bits that the trace starts with
  bool keep_rusage;  // see observe::Options
  bool dry;
  bool emulated;
  bool all_stacks;         // every allocation inside a phase records its call stack
  bool every_stack;        // every allocation and free does, wherever it is: the runtime is static
  const char* stacks;      // the backends whose description asks for call stacks, for the trace's reader
  const char* hooks_path;  // see stubs::Options
  const char* builder;
  const char* notes;  // key=value pairs, each ended by the unit separator
};

/* Nothing is recorded before it returns true; false, with errno, when the trace cannot be written. One trace at a
 * time. The options' strings must outlive the recording. */
bool start_recording(const char* path, const recording_options& options);

/* The last observations, then the trace is closed. Nothing happens when none is open, or in a forked child. */
void stop_recording(const char* why);

}  // namespace etmem
