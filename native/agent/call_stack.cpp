#include "call_stack.h"

#include <link.h>
#include <string.h>
#include <unwind.h>

#include "arena.h"
#include "cfi.h"
#include "state.h"

/* The linker's: where the agent's own code lies. */
extern "C" const char __ehdr_start[] __attribute__((visibility("hidden")));
extern "C" const char etext[] __attribute__((visibility("hidden")));

namespace etmem::call_stack {
namespace {

using cfi::Kind;
using cfi::Registers;
using cfi::Row;

bool is_own(uintptr_t pc) {
  return pc - reinterpret_cast<uintptr_t>(__ehdr_start) < static_cast<uintptr_t>(etext - __ehdr_start);
}

void add(Frames& frames, uintptr_t pc) {
  if (frames.count == 0 && is_own(pc)) return;
  frames.address[frames.count++] = pc;
}

/* Rows by return address, two to a place. Each is written by whoever finds its version even; a reader that sees it
 * change looks the row up itself. */
struct Entry {
  uint32_t version;  // odd while it is written
  uint32_t generation;
  uint64_t pc;
  uint64_t row[2];
};
static_assert(sizeof(Entry) == 32 && sizeof(Row) == 16);

constexpr unsigned kBits = 14;
Entry* table;

Entry* place(uintptr_t pc) {
  const uint64_t hash = pc * 0x9e3779b97f4a7c15u;
  return table + (hash >> (64 - kBits) & ~uint64_t{1});
}

inline bool read(const Entry& entry, uintptr_t pc, uint32_t generation, Row& row) {
  const uint32_t version = __atomic_load_n(&entry.version, __ATOMIC_ACQUIRE);
  if (__atomic_load_n(&entry.pc, __ATOMIC_RELAXED) != pc) return false;
  if (__atomic_load_n(&entry.generation, __ATOMIC_RELAXED) != generation) return false;
  const uint64_t words[2] = {__atomic_load_n(&entry.row[0], __ATOMIC_RELAXED),
                             __atomic_load_n(&entry.row[1], __ATOMIC_RELAXED)};
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  if ((version & 1) != 0 || __atomic_load_n(&entry.version, __ATOMIC_RELAXED) != version) return false;
  memcpy(&row, words, sizeof row);
  return true;
}

void write(Entry& entry, uintptr_t pc, uint32_t generation, const Row& row) {
  uint32_t version = __atomic_load_n(&entry.version, __ATOMIC_RELAXED);
  if ((version & 1) != 0) return;
  if (!__atomic_compare_exchange_n(&entry.version, &version, version + 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
    return;
  }
  __atomic_thread_fence(__ATOMIC_RELEASE);
  uint64_t words[2];
  memcpy(words, &row, sizeof row);
  __atomic_store_n(&entry.pc, pc, __ATOMIC_RELAXED);
  __atomic_store_n(&entry.generation, generation, __ATOMIC_RELAXED);
  __atomic_store_n(&entry.row[0], words[0], __ATOMIC_RELAXED);
  __atomic_store_n(&entry.row[1], words[1], __ATOMIC_RELAXED);
  __atomic_store_n(&entry.version, version + 2, __ATOMIC_RELEASE);
}

Row find(uintptr_t pc, uint32_t generation) {
  Row row;
  Entry* pair = place(pc);
  if (ETMEM_LIKELY(read(pair[0], pc, generation, row)) || read(pair[1], pc, generation, row)) return row;
  row = cfi::row_of(pc);
  const bool first_is_old = __atomic_load_n(&pair[0].generation, __ATOMIC_RELAXED) != generation;
  const bool second_is_old = __atomic_load_n(&pair[1].generation, __ATOMIC_RELAXED) != generation;
  const bool second = !first_is_old && (second_is_old || (__atomic_load_n(&pair[0].version, __ATOMIC_RELAXED) & 2));
  write(pair[second], pc, generation, row);
  return row;
}

/* Changes with every library that is opened or closed: a row of an earlier generation may be of other code. The sum is
 * one number for both, since neither count ever falls. Never 0, which is an entry's that was never written. */
uint32_t code_generation() {
  uint32_t generation = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        *static_cast<uint32_t*>(out) = static_cast<uint32_t>(info->dlpi_adds + info->dlpi_subs);
        return 1;
      },
      &generation);
  return generation;
}

bool make_table() {
  if (ETMEM_LIKELY(__atomic_load_n(&table, __ATOMIC_ACQUIRE) != nullptr)) return true;
  Entry* fresh = arena::allocate_array<Entry>(size_t{1} << kBits);
  if (fresh == nullptr) return false;
  Entry* none = nullptr;
  __atomic_compare_exchange_n(&table, &none, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  return true;
}

/* False where a row does not say enough; the frames are then to be taken again. */
bool walk_by_rows(Registers registers, Frames& frames) {
  if (!make_table()) return false;
  const uint32_t generation = code_generation();
  while (registers.pc != 0 && frames.count < kDepth) {
    add(frames, registers.pc);
    const Row row = find(registers.pc, generation);
    if (row.kind == Kind::kEnd) return true;
    if (row.kind != Kind::kStep || !cfi::step(row, registers)) return false;
  }
  return true;
}

_Unwind_Reason_Code take_frame(_Unwind_Context* context, void* out) {
  Frames* frames = static_cast<Frames*>(out);
  const uintptr_t pc = _Unwind_GetIP(context);
  if (pc == 0 || frames->count == kDepth) return _URC_END_OF_STACK;
  add(*frames, pc);
  return _URC_NO_REASON;
}

}  // namespace

/* Not inlined: it is entered as a frame of its own, whose caller's registers are known without any row. */
__attribute__((noinline)) bool walk(Frames& frames) {
  const uintptr_t frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  const Registers caller = {
      reinterpret_cast<uintptr_t>(__builtin_extract_return_addr(__builtin_return_address(0))),
      reinterpret_cast<uintptr_t>(__builtin_dwarf_cfa()),
      *reinterpret_cast<const uintptr_t*>(frame),
  };
  frames.count = 0;
  if (ETMEM_LIKELY(walk_by_rows(caller, frames))) return true;
  walk_by_libgcc(frames);
  return false;
}

__attribute__((noinline)) void walk_by_libgcc(Frames& frames) {
  frames.count = 0;
  _Unwind_Backtrace(take_frame, &frames);
}

}  // namespace etmem::call_stack
