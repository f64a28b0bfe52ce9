#include "recording.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>

#include "api.h"
#include "clients.h"
#include "etmem/etmem.h"
#include "observe.h"
#include "recorder.h"
#include "scopes.h"
#include "state.h"
#include "stubs.h"
#include "system.h"
#include "trace_file.h"

namespace etmem {
namespace {

volatile uint32_t never = 0;  // until the page exists, and where it cannot be had
uint32_t traces;

void note(const char* key, const char* value, size_t length) {
  if (length == 0) return;
  recorder::meta(format::kMetaNote, format::MetaNote{recorder::string(key), recorder::string(value, length)});
}

/* ETMEM_NOTES is `key=value` pairs, each ended by the unit separator. */
void write_notes(const char* notes) {
  for (const char* at = notes; at != nullptr && *at != 0;) {
    const size_t length = strcspn(at, "\x1f");
    const char* equals = static_cast<const char*>(memchr(at, '=', length));
    if (equals != nullptr) {
      const uint32_t key = recorder::string(at, static_cast<size_t>(equals - at));
      const char* value = equals + 1;
      const size_t bytes = length - static_cast<size_t>(value - at);
      recorder::meta(format::kMetaNote, format::MetaNote{key, recorder::string(value, bytes)});
    }
    at += length;
    if (*at != 0) ++at;
  }
}

void note_memlock() {
  rlimit limit;
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return;
  char text[32] = {};
  if (limit.rlim_cur == RLIM_INFINITY) {
    strcpy(text, "unlimited");
  } else {
    sys::append_number(text, limit.rlim_cur);
  }
  note("memlock.limit", text, strlen(text));
}

void note_own_path() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&note_own_path), &info) == 0) return;
  note("agent.path", info.dli_fname, strlen(info.dli_fname));
}

/* qemu-user accepts MADV_WIPEONFORK and ignores it: there a forked child is stopped here. */
void stop_in_child() { *g_switch = 0; }

bool make_switch() {
  if (g_switch != &never) return true;
  void* page = sys::map_private(4096);
  if (page == nullptr) return false;
  if (madvise(page, 4096, MADV_WIPEONFORK) != 0) return false;  // a child would write into our trace
  g_switch = static_cast<volatile uint32_t*>(page);
  return pthread_atfork(nullptr, nullptr, stop_in_child) == 0;
}

}  // namespace

volatile uint32_t* g_switch = &never;

bool start_recording(const char* path, const recording_options& options) {
  if (recording() || !make_switch() || !trace_file::open(path, options.status)) return false;
  observe::options = {options.keep_rusage, options.dry, options.emulated};
  observe::begin_trace();
  scopes::all_stacks = options.all_stacks;
  scopes::base_flags = options.every_stack ? uint32_t{ETMEM_RECORD_STACKS | ETMEM_RECORD_FREES} : 0u;
  scopes::begin_trace();
  stubs::options = {options.hooks_path, options.builder, options.dry};
  stubs::api = &etmem_api_v1;
  *g_switch = ++traces;
  recorder::begin_tables();
  begin_clients();
  clients::tell();
  note("trace.path", path, strlen(path));
  note_own_path();
  note_memlock();
  if (options.every_stack) note("stacks.everywhere", "1", 1);
  if (options.stacks != nullptr) note("stacks", options.stacks, strlen(options.stacks));
  write_notes(options.notes);
  observe::rss(format::kRssStart, 0);
  return true;
}

void stop_recording(const char* why) {
  if (!recording()) return;
  Busy busy;
  observe::modules(0);
  observe::rss(format::kRssExit, 0);
  if (!inferences_are_over()) observe::snapshot(recorder::string(why), 0);
  *g_switch = 0;
  trace_file::close();
}

}  // namespace etmem
