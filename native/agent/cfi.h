/* One row of call frame information: how to get from a return address to the one above it. */
#pragma once

#include <stdint.h>

#include "state.h"

namespace etmem::cfi {

/* The three registers that nearly all rows are written in. */
struct Registers {
  uintptr_t pc, sp, fp;
};

enum class Kind : uint8_t {
  kOther = 0,  // says what a Row cannot hold: another register, an expression, a signal's frame
  kStep,
  kEnd,  // the outermost frame, or code without call frame information
};

enum class Cfa : uint8_t {
  kStack,        // sp + cfa_offset
  kFrame,        // fp + cfa_offset
  kInFrameSlot,  // what lies at fp + cfa_offset: functions that align their stack
  kInStackSlot,  // what lies at sp + cfa_offset
};

enum class Saved : uint8_t {
  kSame,     // fp is the caller's already
  kAtCfa,    // it lies at CFA + fp_offset
  kAtFrame,  // it lies at fp + fp_offset: functions that align their stack
};

struct Row {
  int32_t cfa_offset;
  int32_t fp_offset;
  int32_t ra_offset;  // from the CFA
  Kind kind;
  Cfa cfa;
  Saved fp;
  uint8_t reserved;
};
static_assert(sizeof(Row) == 16);

/* Decodes the row of the call that returns to `pc`. Takes no lock where the C library has _dl_find_object. */
Row row_of(uintptr_t pc);

inline uintptr_t load(uintptr_t at) { return *reinterpret_cast<const uintptr_t*>(at); }

inline uintptr_t plain_address(uintptr_t address) {
#if defined(__aarch64__)
  /* xpaclri: takes a signature off; on a CPU without it a no-operation. */
  register uintptr_t x30 __asm__("x30") = address;
  __asm__("hint #7" : "+r"(x30));
  return x30;
#else
  return address;
#endif
}

/* From a frame to its caller's. False when the row leads nowhere: the stack must go up. */
inline bool step(const Row& row, Registers& registers) {
  uintptr_t cfa = row.cfa == Cfa::kStack || row.cfa == Cfa::kInStackSlot ? registers.sp : registers.fp;
  cfa += static_cast<intptr_t>(row.cfa_offset);
  if (ETMEM_UNLIKELY(row.cfa >= Cfa::kInFrameSlot)) {
    if (cfa < registers.sp || (cfa & 7) != 0) return false;
    cfa = load(cfa);
  }
  constexpr uintptr_t kLargestFrame = uintptr_t{1} << 30;
  if (cfa <= registers.sp || cfa - registers.sp > kLargestFrame || (cfa & 7) != 0) return false;
  if (row.fp == Saved::kAtCfa) {
    registers.fp = load(cfa + static_cast<intptr_t>(row.fp_offset));
  } else if (row.fp == Saved::kAtFrame) {
    registers.fp = load(registers.fp + static_cast<intptr_t>(row.fp_offset));
  }
  registers.pc = plain_address(load(cfa + static_cast<intptr_t>(row.ra_offset)));
  registers.sp = cfa;
  return true;
}

}  // namespace etmem::cfi
