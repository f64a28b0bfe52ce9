/* A preloaded agent: whether this process records, by the environment that it was started with. */
#include <stdlib.h>
#include <string.h>

#include "next.h"
#include "recording.h"
#include "system.h"
#include "trace_format.h"

namespace etmem {
namespace {

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

/* A process that is not recorded leaves its name for the hint "the children seen were". */
void name_child(const char* trace) {
  char path[4200];
  if (strlen(trace) > 4096) return;
  strcpy(path, trace);
  strcat(path, ".children");
  char line[256] = {};
  sys::append_number(line, static_cast<uint64_t>(getpid()));
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
    sys::append_number(path, static_cast<uint64_t>(getpid()));
  }
  recording_options options = {};
  options.status = started ? 0u : static_cast<uint32_t>(format::kForkedChild);
  options.keep_rusage = is_set(environment, "ETMEM_KEEP_RUSAGE");
  options.dry = is_set(environment, "ETMEM_DRY");
  options.emulated = is_set(environment, "ETMEM_EMULATED");
  options.all_stacks = is_set(environment, "ETMEM_ALL_STACKS");
  options.every_stack = is_set(environment, "ETMEM_EVERY_STACK");
  options.stacks = variable(environment, "ETMEM_STACKS");
  options.hooks_path = variable(environment, "ETMEM_HOOKS_PATH");
  options.builder = variable(environment, "ETMEM_BUILDER");
  options.notes = variable(environment, "ETMEM_NOTES");
  if (!start_recording(path, options)) {
    static const char message[] = "etmem: the trace cannot be written\n";
    [[maybe_unused]] const ssize_t n = ::write(STDERR_FILENO, message, sizeof message - 1);
  }
}

/* Runs first of all constructors (-z initfirst): blocks of other libraries' constructors are then seen too. libc
 * has not stored the environment by then, so it is taken from the arguments. */
__attribute__((constructor)) void construct(int, char**, char** environment) { start(environment); }

__attribute__((destructor)) void finish() { stop_recording("exit"); }

}  // namespace
}  // namespace etmem
