#include "stubs.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "arena.h"
#include "elf_notes.h"
#include "etmem/hooks.h"
#include "recorder.h"
#include "scopes.h"
#include "system.h"

extern char** environ;

namespace etmem::stubs {

Options options;
const etmem_api* api;

namespace {

#define ETMEM_STUB(name, symbol) k_##name,
enum Stub : uint32_t {
#include "hooks.def"
  kStubs
};

#define ETMEM_STUB(name, symbol) #symbol,
constexpr const char* kSymbols[] = {
#include "hooks.def"
};

#define ETMEM_STUB(name, symbol) false,
#define ETMEM_DRY(name, symbol) true,
constexpr bool kIsDry[] = {
#include "hooks.def"
};

int answer_success() { return 0; }

/* One loaded ExecuTorch, told by the module that defines Program::load: a runtime may be spread over several (in
 * 1.4 the backends' registry is in another library). With it, what its hooks library wants to take. */
struct Runtime {
  const void* base;
  void* handle;
  void* target[kStubs];  // nullptr: the original
  Runtime* next;
};

/* The calls of one module: where each stub's call goes. Never freed: modules are few. */
struct Caller {
  uintptr_t start, end;
  void* target[kStubs];
  Caller* next;
};

SpinLock lock;  // of list heads only
Runtime* runtimes;
Caller* callers;
bool taken;

const void* base_of(const void* address) {
  Dl_info info;
  return dladdr(address, &info) != 0 ? info.dli_fbase : nullptr;
}

void* own_base() {
  static const void* base = base_of(reinterpret_cast<const void*>(&base_of));
  return const_cast<void*>(base);
}

/* What a module would have been bound to without us. */
void* original_from(void* handle, const char* symbol) {
  void* found = handle != nullptr ? dlsym(handle, symbol) : nullptr;
  if (found == nullptr || base_of(found) == own_base()) found = dlsym(RTLD_NEXT, symbol);
  return found;
}

void* original_of(void* runtime, const char* symbol) {
  return original_from(static_cast<Runtime*>(runtime)->handle, symbol);
}

void note(const char* key, const char* value) {
  recorder::meta(format::kMetaNote, format::MetaNote{recorder::string(key), recorder::string(value)});
}

bool starts_with(const char* text, const char* prefix) { return strncmp(text, prefix, strlen(prefix)) == 0; }

/* Runs `<builder> -m etmem.capture.hooks_builder <library>`; what it prints is the library to open. */
bool build_hooks(const char* library, char* path, size_t capacity) {
  if (options.builder == nullptr) return false;
  const int fd = static_cast<int>(syscall(SYS_memfd_create, "etmem-hooks", 1u /* MFD_CLOEXEC */));
  if (fd < 0) return false;
  size_t count = 0;
  while (environ[count] != nullptr) ++count;
  char** environment = arena::allocate_array<char*>(count + 1);
  size_t kept = 0;
  for (size_t i = 0; i < count; ++i) {  // the builder is not to be recorded
    if (!starts_with(environ[i], "LD_PRELOAD=") && !starts_with(environ[i], "ETMEM_PARENT=")) {
      environment[kept++] = environ[i];
    }
  }
  const char* argv[] = {options.builder, "-m", "etmem.capture.hooks_builder", library, nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fd, STDOUT_FILENO);
  pid_t child;
  int status = -1;
  if (posix_spawn(&child, options.builder, &actions, nullptr, const_cast<char**>(argv), environment) == 0) {
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  }
  posix_spawn_file_actions_destroy(&actions);
  const ssize_t n = status == 0 ? pread(fd, path, capacity - 1, 0) : -1;
  ::close(fd);
  if (n <= 0) return false;
  path[n] = 0;
  path[strcspn(path, "\n")] = 0;
  return true;
}

/* Tells one build of ExecuTorch from another: its build id, or where it has none its path. */
struct Identity {
  const void* base;
  char text[PATH_MAX + 8];
  size_t length;
};

int find_identity(dl_phdr_info* info, size_t, void* out) {
  Identity* query = static_cast<Identity*>(out);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr) & segment = info->dlpi_phdr[i];
    const uintptr_t start = info->dlpi_addr + segment.p_vaddr;
    const uintptr_t base = reinterpret_cast<uintptr_t>(query->base);
    if (segment.p_type != PT_LOAD || base < start || base >= start + segment.p_memsz) continue;
    query->length = elf::build_id(*info, query->text, sizeof query->text - 1);
    query->text[query->length] = 0;
    return 1;
  }
  return 0;
}

const etmem_hooks* open_hooks(const char* path, const char* build_id) {
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    note("hooks.error", dlerror());
    return nullptr;
  }
  const etmem_hooks* hooks = static_cast<const etmem_hooks*>(dlsym(handle, "etmem_hooks_v1"));
  const bool fits = hooks != nullptr && hooks->version == ETMEM_HOOKS_VERSION && strcmp(hooks->build_id, build_id) == 0;
  return fits ? hooks : nullptr;
}

const etmem_hooks* find_hooks(const char* library, const char* build_id) {
  const etmem_hooks* hooks = nullptr;
  char built[PATH_MAX];
  const char* path = options.hooks_path;
  if (path != nullptr) hooks = open_hooks(path, build_id);
  if (hooks == nullptr && build_hooks(library, built, sizeof built)) {
    path = built;
    hooks = open_hooks(path, build_id);
  }
  if (hooks == nullptr) {
    note("hooks.error", "no hooks library could be built or opened for this ExecuTorch");
  } else {
    note("hooks.path", path);
  }
  return hooks;
}

void open_runtime(Runtime* runtime, const Dl_info& module) {
  char library[PATH_MAX];
  if (realpath(module.dli_fname, library) == nullptr) return;
  Identity id = {module.dli_fbase, {}, 0};
  dl_iterate_phdr(find_identity, &id);
  if (id.length == 0) strcat(strcpy(id.text, "path:"), library);
  note("executorch.library", library);
  note("executorch.build_id", id.text);
  const etmem_hooks* hooks = find_hooks(library, id.text);
  runtime->handle = dlopen(module.dli_fname, RTLD_NOLOAD | RTLD_LAZY);
  if (hooks == nullptr || runtime->handle == nullptr) return;
  hooks->bind(api, runtime, original_of);
  for (uint32_t i = 0; i < hooks->count; ++i) {
    for (uint32_t k = 0; k < kStubs; ++k) {
      if (strcmp(hooks->entries[i].symbol, kSymbols[k]) == 0) runtime->target[k] = hooks->entries[i].function;
    }
  }
}

/* The runtime that a module would use, opened on first sight; nullptr when it reaches none. */
Runtime* runtime_for(void* module) {
  const void* anchor = original_from(module, kSymbols[k_program_load]);
  Dl_info info;
  if (anchor == nullptr || dladdr(anchor, &info) == 0) return nullptr;
  {
    Guard guard(lock);
    for (Runtime* r = runtimes; r != nullptr; r = r->next) {
      if (r->base == info.dli_fbase) return r;
    }
  }
  Runtime* runtime = arena::allocate_array<Runtime>(1);
  if (runtime == nullptr) return nullptr;
  runtime->base = info.dli_fbase;
  open_runtime(runtime, info);
  Guard guard(lock);
  runtime->next = runtimes;
  runtimes = runtime;
  return runtime;
}

void* choose_target(const Dl_info& caller, uint32_t stub) {
  if (kIsDry[stub] && options.dry) {
    note("dry.symbol", kSymbols[stub]);
    return reinterpret_cast<void*>(&answer_success);
  }
  void* module = dlopen(caller.dli_fname, RTLD_NOLOAD | RTLD_LAZY);
  if (module == nullptr) module = dlopen(nullptr, RTLD_LAZY);  // the executable itself
  if (!kIsDry[stub] && !__atomic_load_n(&taken, __ATOMIC_ACQUIRE)) {
    Runtime* runtime = runtime_for(module);
    if (runtime != nullptr && runtime->target[stub] != nullptr) return runtime->target[stub];
  }
  return original_from(module, kSymbols[stub]);
}

Caller* find_caller(uintptr_t address) {
  Guard guard(lock);
  for (Caller* c = callers; c != nullptr; c = c->next) {
    if (address >= c->start && address < c->end) return c;
  }
  return nullptr;
}

/* The executable segment that holds the address stands for the module. */
int find_segment(dl_phdr_info* info, size_t, void* out) {
  Caller* caller = static_cast<Caller*>(out);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr) & segment = info->dlpi_phdr[i];
    const uintptr_t start = info->dlpi_addr + segment.p_vaddr;
    if (segment.p_type != PT_LOAD || caller->start < start || caller->start >= start + segment.p_memsz) continue;
    caller->start = start;
    caller->end = start + segment.p_memsz;
    return 1;
  }
  return 0;
}

Caller* add_caller(uintptr_t address) {
  Caller* caller = arena::allocate_array<Caller>(1);
  if (caller == nullptr) return nullptr;
  caller->start = address;
  if (dl_iterate_phdr(find_segment, caller) == 0) return nullptr;
  Guard guard(lock);
  caller->next = callers;
  callers = caller;
  return caller;
}

[[noreturn]] void no_original(uint32_t stub) {
  static const char message[] = "etmem: no definition of an ExecuTorch function that was called: ";
  [[maybe_unused]] ssize_t n = ::write(STDERR_FILENO, message, sizeof message - 1);
  n = ::write(STDERR_FILENO, kSymbols[stub], strlen(kSymbols[stub]));
  n = ::write(STDERR_FILENO, "\n", 1);
  abort();
}

}  // namespace

bool take_runtime() {
  Guard guard(lock);
  if (runtimes == nullptr) __atomic_store_n(&taken, true, __ATOMIC_RELEASE);
  return taken;
}

}  // namespace etmem::stubs

/* Called by stubs.S with the arguments of the hooked call saved. Everything that is allocated while a hooks
 * library is found and opened is the profiler's. */
extern "C" __attribute__((visibility("hidden"))) void* etmem_stub_target(uint32_t stub, uintptr_t return_address) {
  using namespace etmem;
  using namespace etmem::stubs;
  Caller* caller = find_caller(return_address);
  if (caller != nullptr) {
    void* target = __atomic_load_n(&caller->target[stub], __ATOMIC_ACQUIRE);
    if (target != nullptr) return target;
  }
  const int saved = errno;
  const uint32_t scope = scopes::begin(format::kScopeProfiler, recorder::string("hooks"), 0, 0, 0);
  if (caller == nullptr) caller = add_caller(return_address);
  Dl_info info = {};
  dladdr(reinterpret_cast<void*>(return_address), &info);
  void* target = choose_target(info, stub);
  scopes::end(scope, false);
  errno = saved;
  if (target == nullptr) no_original(stub);
  if (caller != nullptr) __atomic_store_n(&caller->target[stub], target, __ATOMIC_RELEASE);
  return target;
}
