/* The life of a recording: from the environment at the process's start to its end. */
#include <dlfcn.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "api.h"
#include "arena.h"
#include "next.h"
#include "observe.h"
#include "recorder.h"
#include "state.h"
#include "stubs.h"
#include "system.h"
#include "trace_file.h"

namespace etmem {
namespace {

volatile uint32_t never = 0;  // until the page exists, and where it cannot be had

const char* variable(char** environment, const char* name) {
  const size_t length = strlen(name);
  for (char** entry = environment; entry != nullptr && *entry != nullptr; ++entry) {
    if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=') return *entry + length + 1;
  }
  return nullptr;
}

bool is_set(char** environment, const char* name) {
  const char* value = variable(environment, name);
  return value != nullptr && *value != 0 && strcmp(value, "0") != 0;
}

void append_number(char* out, uint64_t value) {
  char digits[20];
  size_t n = 0;
  do {
    digits[n++] = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value != 0);
  out += strlen(out);
  while (n > 0) *out++ = digits[--n];
  *out = 0;
}

/* A process that is not recorded leaves its name for the hint "the children seen were". */
void name_child(const char* trace) {
  char path[4200];
  if (strlen(trace) > 4096) return;
  strcpy(path, trace);
  strcat(path, ".children");
  char line[256] = {};
  append_number(line, static_cast<uint64_t>(getpid()));
  strcat(line, " ");
  const size_t used = strlen(line);
  char command[200];
  ssize_t n = sys::read_file("/proc/self/cmdline", command, sizeof command);
  if (n <= 0) return;
  for (ssize_t i = 0; i < n; ++i) line[used + static_cast<size_t>(i)] = command[i] == 0 ? ' ' : command[i];
  line[used + static_cast<size_t>(n)] = '\n';
  const int fd = sys::open(path, O_WRONLY | O_APPEND | O_CREAT, 0644);
  if (fd < 0) return;
  [[maybe_unused]] const ssize_t written = ::write(fd, line, used + static_cast<size_t>(n) + 1);
  ::close(fd);
}

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
    append_number(text, limit.rlim_cur);
  }
  note("memlock.limit", text, strlen(text));
}

void note_own_path() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&note_own_path), &info) != 0) note("agent.path", info.dli_fname, strlen(info.dli_fname));
}

bool make_switch() {
  void* page = sys::map_private(4096);
  if (page == nullptr) return false;
  if (madvise(page, 4096, MADV_WIPEONFORK) != 0) return false;  // a child would write into our trace
  g_switch = static_cast<volatile uint32_t*>(page);
  return true;
}

void start(char** environment) {
  next::resolve();
  const char* trace = variable(environment, "ETMEM_TRACE");
  const char* parent = variable(environment, "ETMEM_PARENT");
  if (trace == nullptr || *trace == 0) return;
  const bool started = parent != nullptr && strtol(parent, nullptr, 10) == getppid();
  char path[4200];
  if (strlen(trace) > 4096) return;
  strcpy(path, trace);
  if (!started) {
    if (!is_set(environment, "ETMEM_CHILDREN")) {
      name_child(trace);
      return;
    }
    strcat(path, ".");
    append_number(path, static_cast<uint64_t>(getpid()));
  }
  if (!make_switch()) return;
  if (!trace_file::open(path, started ? 0u : static_cast<uint32_t>(format::kForkedChild))) {
    static const char message[] = "etmem: the trace cannot be written\n";
    [[maybe_unused]] const ssize_t n = ::write(STDERR_FILENO, message, sizeof message - 1);
    return;
  }
  observe::options = {is_set(environment, "ETMEM_KEEP_RUSAGE"), is_set(environment, "ETMEM_DRY")};
  stubs::options = {variable(environment, "ETMEM_HOOKS_PATH"), variable(environment, "ETMEM_BUILDER"),
                    is_set(environment, "ETMEM_DRY")};
  stubs::api = &etmem_api_v1;
  *g_switch = 1;
  note("trace.path", path, strlen(path));
  note_own_path();
  note_memlock();
  const char* stacks = variable(environment, "ETMEM_STACKS");
  if (stacks != nullptr) note("stacks", stacks, strlen(stacks));
  write_notes(variable(environment, "ETMEM_NOTES"));
  observe::rss(format::kRssStart, 0);
}

/* Runs first of all constructors (-z initfirst): blocks of other libraries' constructors are then seen too. libc
 * has not stored the environment by then, so it is taken from the arguments. */
__attribute__((constructor)) void construct(int, char**, char** environment) { start(environment); }

__attribute__((destructor)) void finish() {
  if (!recording()) return;
  Busy busy;
  observe::modules(0);
  observe::rss(format::kRssExit, 0);
  observe::snapshot(recorder::string("exit"), 0);
  *g_switch = 0;
  trace_file::close();
}

}  // namespace

volatile uint32_t* g_switch = &never;

}  // namespace etmem
