#include "attach.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "arena.h"
#include "clients.h"
#include "next.h"
#include "state.h"

extern "C" void etmem_dlsym_stub();  // stubs.S: looks for new modules, then is dlsym

namespace etmem::attach {
namespace {

#if defined(__x86_64__)
constexpr unsigned kJumpSlot = R_X86_64_JUMP_SLOT, kGlobalData = R_X86_64_GLOB_DAT, kAbsolute = R_X86_64_64;
#elif defined(__aarch64__)
constexpr unsigned kJumpSlot = R_AARCH64_JUMP_SLOT, kGlobalData = R_AARCH64_GLOB_DAT, kAbsolute = R_AARCH64_ABS64;
#endif

struct Name {
  const char* symbol;
  void* ours;
  void* theirs;  // what the process would call; nullptr for ExecuTorch's, of which there may be several
};

#define ETMEM_LIBC(name) {#name, reinterpret_cast<void*>(static_cast<decltype(&::name)>(::name)), nullptr},
#define ETMEM_STUB(name, symbol) {#symbol, nullptr, nullptr},
Name names[] = {
#include "hooks.def"
    {"dlsym", reinterpret_cast<void*>(etmem_dlsym_stub), nullptr},
};

/* A slot that was written; `base` tells its module, which may have been unloaded since. */
struct Slot {
  void** at;
  void* before;
  void* ours;
  uintptr_t base;
  Slot* next;
};

SpinLock lock;
Slot* slots;
unsigned slot_count;
unsigned long long adds_seen;
bool attached;
uintptr_t own_base;

constexpr uint32_t kModules = 8192;
uintptr_t* patched;  // load addresses, an open-addressing set

bool remember(uintptr_t base) {
  uint32_t at = static_cast<uint32_t>(base >> 12) % kModules;
  for (uint32_t n = 0; n < kModules; ++n, at = (at + 1) % kModules) {
    if (patched[at] == base + 1) return false;
    if (patched[at] == 0) {
      patched[at] = base + 1;  // the executable of a non-PIE program lies at 0
      return true;
    }
  }
  return false;
}

struct Module {
  uintptr_t base;
  const ElfW(Sym) * symbols;
  const char* strings;
  const ElfW(Rela) * tables[2];
  size_t counts[2];
  uintptr_t relro_start, relro_end;
  uintptr_t start, end;
};

bool describe(const dl_phdr_info& info, Module& module) {
  module = {};
  module.base = info.dlpi_addr;
  module.start = ~uintptr_t{0};
  const ElfW(Dyn)* dynamic = nullptr;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr) & segment = info.dlpi_phdr[i];
    const uintptr_t start = info.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_DYNAMIC) dynamic = reinterpret_cast<const ElfW(Dyn)*>(start);
    if (segment.p_type == PT_GNU_RELRO) {
      module.relro_start = start;
      module.relro_end = start + segment.p_memsz;
    }
    if (segment.p_type == PT_LOAD) {
      if (start < module.start) module.start = start;
      if (start + segment.p_memsz > module.end) module.end = start + segment.p_memsz;
    }
  }
  if (dynamic == nullptr) return false;
  for (; dynamic->d_tag != DT_NULL; ++dynamic) {
    const auto address = dynamic->d_un.d_ptr;
    if (dynamic->d_tag == DT_SYMTAB) module.symbols = reinterpret_cast<const ElfW(Sym)*>(address);
    if (dynamic->d_tag == DT_STRTAB) module.strings = reinterpret_cast<const char*>(address);
    if (dynamic->d_tag == DT_JMPREL) module.tables[0] = reinterpret_cast<const ElfW(Rela)*>(address);
    if (dynamic->d_tag == DT_PLTRELSZ) module.counts[0] = dynamic->d_un.d_val / sizeof(ElfW(Rela));
    if (dynamic->d_tag == DT_RELA) module.tables[1] = reinterpret_cast<const ElfW(Rela)*>(address);
    if (dynamic->d_tag == DT_RELASZ) module.counts[1] = dynamic->d_un.d_val / sizeof(ElfW(Rela));
  }
  /* The vdso has offsets instead of addresses here: it imports nothing. */
  return module.symbols != nullptr && module.strings != nullptr &&
         reinterpret_cast<uintptr_t>(module.symbols) >= module.start;
}

const Name* find_name(const char* symbol) {
  for (const Name& name : names) {
    if (name.ours != nullptr && strcmp(name.symbol, symbol) == 0) return &name;
  }
  return nullptr;
}

/* A slot of libc's names is ours to take when it holds what the process would call, or is still to be bound: a
 * library with an allocator of its own (RTLD_DEEPBIND) keeps it. */
bool may_take(const Module& module, const Name& name, const void* held, unsigned type) {
  if (held == name.ours) return false;
  if (name.theirs == nullptr) return type != kAbsolute;
  if (held == name.theirs) return true;
  const uintptr_t value = reinterpret_cast<uintptr_t>(held);
  return type == kJumpSlot && value >= module.start && value < module.end;
}

void store(const Module& module, void** at, void* value) {
  const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t where = reinterpret_cast<uintptr_t>(at);
  const bool read_only = where >= (module.relro_start & ~(page - 1)) && where < module.relro_end;
  void* start = reinterpret_cast<void*>(where & ~(page - 1));
  if (read_only && next::call.mprotect(start, page, PROT_READ | PROT_WRITE) != 0) return;
  __atomic_store_n(at, value, __ATOMIC_RELEASE);
  if (read_only) next::call.mprotect(start, page, PROT_READ);
}

void patch(const Module& module) {
  for (int t = 0; t < 2; ++t) {
    for (size_t i = 0; module.tables[t] != nullptr && i < module.counts[t]; ++i) {
      const ElfW(Rela) & relocation = module.tables[t][i];
      const unsigned type = ELF64_R_TYPE(relocation.r_info);
      if (type != kJumpSlot && type != kGlobalData && type != kAbsolute) continue;
      const ElfW(Sym) & symbol = module.symbols[ELF64_R_SYM(relocation.r_info)];
      const Name* name = find_name(module.strings + symbol.st_name);
      if (name == nullptr) continue;
      void** at = reinterpret_cast<void**>(module.base + relocation.r_offset);
      void* before = *at;
      if (!may_take(module, *name, before, type)) continue;
      Slot* slot = arena::allocate_array<Slot>(1);
      if (slot == nullptr) return;
      store(module, at, name->ours);
      *slot = {at, before, name->ours, module.base, slots};
      slots = slot;
      ++slot_count;
    }
  }
}

bool is_linker(const char* name) {
  const char* base = name == nullptr ? nullptr : strrchr(name, '/');
  return base != nullptr && strncmp(base, "/ld-", 4) == 0;
}

int visit(dl_phdr_info* info, size_t, void*) {
  if (info->dlpi_adds == adds_seen) return 1;
  Module module;
  if (!describe(*info, module) || is_linker(info->dlpi_name)) return 0;
  if (own_base >= module.start && own_base < module.end) return 0;
  if (remember(info->dlpi_addr)) patch(module);
  return 0;
}

unsigned long long adds() {
  unsigned long long count = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        *static_cast<unsigned long long*>(out) = info->dlpi_adds;
        return 1;
      },
      &count);
  return count;
}

void patch_new_modules() {
  const unsigned long long now = adds();
  if (now == adds_seen) return;
  dl_iterate_phdr(visit, nullptr);
  clients::tell();
  adds_seen = now;
}

/* Only modules that are still there: the memory of others may be anything now. */
int restore(dl_phdr_info* info, size_t, void*) {
  Module module;
  if (!describe(*info, module)) return 0;
  for (Slot* slot = slots; slot != nullptr; slot = slot->next) {
    if (slot->base == module.base && *slot->at == slot->ours) store(module, slot->at, slot->before);
  }
  return 0;
}

void prepare_names() {
  void* self = dlopen(nullptr, RTLD_LAZY);
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&prepare_names), &info) == 0) return;
  own_base = reinterpret_cast<uintptr_t>(info.dli_fbase) + 1;
  void* agent = dlopen(info.dli_fname, RTLD_NOLOAD | RTLD_LAZY);
  size_t index = 0;
#define ETMEM_LIBC(name) names[index++].theirs = dlsym(self, #name);
#define ETMEM_STUB(name, symbol) names[index++].ours = dlsym(agent, #symbol);
#include "hooks.def"
  names[index].theirs = dlsym(self, "dlsym");
}

}  // namespace

unsigned attach() {
  Busy busy;
  if (patched == nullptr) {
    patched = arena::allocate_array<uintptr_t>(kModules);
    if (patched == nullptr) return 0;
    prepare_names();
  }
  /* In a process with another malloc than libc's, ours must call that one. */
  next::resolve_default();
  Guard guard(lock);
  attached = true;
  patch_new_modules();
  return slot_count;
}

void detach() {
  Busy busy;
  Guard guard(lock);
  attached = false;
  dl_iterate_phdr(restore, nullptr);
  slots = nullptr;  // a few bytes each, of the agent's own memory
  slot_count = 0;
  memset(patched, 0, sizeof *patched * kModules);
  adds_seen = 0;
}

}  // namespace etmem::attach

/* Called by stubs.S on every dlsym of an attached module, and by thread starts: what was opened since is patched. */
extern "C" __attribute__((visibility("hidden"))) void etmem_new_modules() {
  using namespace etmem;
  using namespace etmem::attach;
  if (!attached || t_state.busy != 0) return;
  Busy busy;
  Guard guard(lock);
  if (attached) patch_new_modules();
}
