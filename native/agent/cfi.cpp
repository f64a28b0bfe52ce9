#include "cfi.h"

#include <string.h>

/* libgcc's search, which knows .eh_frame_hdr; it is linked into the agent with its name hidden. */
struct FdeBases {
  void* text;
  void* data;
  void* function;
};
extern "C" const void* _Unwind_Find_FDE(void* pc, FdeBases* bases);

namespace etmem::cfi {
namespace {

#if defined(__aarch64__)
constexpr uint64_t kFp = 29, kSp = 31;
#else
constexpr uint64_t kFp = 6, kSp = 7;
#endif

constexpr uint8_t kOmitted = 0xff;
constexpr uint8_t kAligned = 0x50;

/* Reads what .eh_frame is made of. Nothing is checked: libgcc trusts the same bytes. */
class Bytes {
 public:
  explicit Bytes(const uint8_t* at) : at_(at) {}
  const uint8_t* at() const { return at_; }
  void skip(uint64_t n) { at_ += n; }

  template <typename T>
  T fixed() {
    T value;
    memcpy(&value, at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  uint64_t uleb() {
    uint64_t value = 0;
    unsigned shift = 0;
    uint8_t byte;
    do {
      byte = *at_++;
      if (shift < 64) value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      shift += 7;
    } while (byte & 0x80);
    return value;
  }
  int64_t sleb() {
    int64_t value = 0;
    unsigned shift = 0;
    uint8_t byte;
    do {
      byte = *at_++;
      if (shift < 64) value |= static_cast<int64_t>(byte & 0x7f) << shift;
      shift += 7;
    } while (byte & 0x80);
    if (shift < 64 && (byte & 0x40)) value |= -(int64_t{1} << shift);
    return value;
  }
  /* False for an encoding that is none. */
  bool skip_encoded(uint8_t encoding) {
    if (encoding == kOmitted) return true;
    if (encoding == kAligned) {
      at_ = reinterpret_cast<const uint8_t*>((reinterpret_cast<uintptr_t>(at_) + 7) & ~uintptr_t{7}) + 8;
      return true;
    }
    switch (encoding & 0x0f) {
      case 0x00:
      case 0x04:
      case 0x0c:
        at_ += 8;
        return true;
      case 0x01:
      case 0x09:
        uleb();
        return true;
      case 0x02:
      case 0x0a:
        at_ += 2;
        return true;
      case 0x03:
      case 0x0b:
        at_ += 4;
        return true;
      default:
        return false;
    }
  }

 private:
  const uint8_t* at_;
};

struct Cie {
  uint64_t code_align;
  int64_t data_align;
  uint64_t return_register;
  uint8_t pointers = 0;  // how the FDE's addresses are written
  bool augmented = false;
  bool signal = false;
  const uint8_t* program;
  const uint8_t* end;
};

bool read_cie(const uint8_t* start, Cie& cie) {
  Bytes in(start);
  const uint32_t length = in.fixed<uint32_t>();
  if (length == 0xffffffff) return false;
  cie.end = in.at() + length;
  in.skip(4);
  const uint8_t version = in.fixed<uint8_t>();
  if (version != 1 && version != 3) return false;
  const char* augmentation = reinterpret_cast<const char*>(in.at());
  in.skip(strlen(augmentation) + 1);
  cie.code_align = in.uleb();
  cie.data_align = in.sleb();
  cie.return_register = version == 1 ? in.fixed<uint8_t>() : in.uleb();
  if (*augmentation == 0) {
    cie.program = in.at();
    return true;
  }
  if (*augmentation++ != 'z') return false;
  cie.augmented = true;
  const uint64_t bytes = in.uleb();
  cie.program = in.at() + bytes;
  for (; *augmentation != 0; ++augmentation) {
    switch (*augmentation) {
      case 'R':
        cie.pointers = in.fixed<uint8_t>();
        break;
      case 'L':
        in.skip(1);
        break;
      case 'P':
        if (!in.skip_encoded(in.fixed<uint8_t>())) return false;
        break;
      case 'S':
        cie.signal = true;
        break;
      case 'B':
      case 'G':
        break;  // keys and tags of aarch64: addresses are stripped anyway
      default:
        return false;
    }
  }
  return true;
}

/* Where one register is saved. */
struct Rule {
  enum Where : uint8_t { kSame, kAtCfa, kAtFrame, kUndefined, kElsewhere } where;
  int64_t offset;
};

struct State {
  Rule fp, ra;
  bool cfa_known;  // false: an expression or register that a Row cannot hold
  Cfa cfa;
  int64_t cfa_offset;
  bool saves_sp;
};

class Program {
 public:
  Program(const Cie& cie, uintptr_t function) : cie_(cie), location_(function) {}

  /* Runs to the row that holds just before `pc`. False for an instruction that is unknown. */
  bool run(const uint8_t* at, const uint8_t* end, uintptr_t pc) {
    Bytes in(at);
    while (in.at() < end && location_ < pc) {
      if (!one(in)) return false;
    }
    return true;
  }
  void keep_initial() { initial_ = state; }

  State state = {{Rule::kSame, 0}, {Rule::kSame, 0}, false, Cfa::kStack, 0, false};

 private:
  static constexpr unsigned kRemembered = 8;

  bool one(Bytes& in) {
    const uint8_t code = in.fixed<uint8_t>();
    const uint8_t low = code & 0x3f;
    switch (code & 0xc0) {
      case 0x40:
        return advance(low);
      case 0x80:
        return set(low, Rule::kAtCfa, static_cast<int64_t>(in.uleb()) * cie_.data_align);
      case 0xc0:
        return restore(low);
      default:
        break;
    }
    switch (code) {
      case 0x00:
        return true;  // nop
      case 0x02:
        return advance(in.fixed<uint8_t>());  // advance_loc1
      case 0x03:
        return advance(in.fixed<uint16_t>());  // advance_loc2
      case 0x04:
        return advance(in.fixed<uint32_t>());  // advance_loc4
      case 0x05: {                             // offset_extended
        const uint64_t which = in.uleb();
        return set(which, Rule::kAtCfa, static_cast<int64_t>(in.uleb()) * cie_.data_align);
      }
      case 0x06:
        return restore(in.uleb());  // restore_extended
      case 0x07:
        return set(in.uleb(), Rule::kUndefined, 0);  // undefined
      case 0x08:
        return set(in.uleb(), Rule::kSame, 0);  // same_value
      case 0x09: {                              // register
        const uint64_t which = in.uleb();
        in.uleb();
        return set(which, Rule::kElsewhere, 0);
      }
      case 0x0a:  // remember_state
        if (depth_ == kRemembered) return false;
        remembered_[depth_++] = state;
        return true;
      case 0x0b:  // restore_state
        if (depth_ == 0) return false;
        state = remembered_[--depth_];
        return true;
      case 0x0c: {  // def_cfa
        const uint64_t which = in.uleb();
        return define_cfa(which, static_cast<int64_t>(in.uleb()));
      }
      case 0x0d:
        return define_cfa(in.uleb(), state.cfa_offset);  // def_cfa_register
      case 0x0e:                                         // def_cfa_offset
        state.cfa_offset = static_cast<int64_t>(in.uleb());
        return true;
      case 0x0f:
        return define_cfa_expression(in);
      case 0x10:
        return expression(in);
      case 0x11: {  // offset_extended_sf
        const uint64_t which = in.uleb();
        return set(which, Rule::kAtCfa, in.sleb() * cie_.data_align);
      }
      case 0x12: {  // def_cfa_sf
        const uint64_t which = in.uleb();
        return define_cfa(which, in.sleb() * cie_.data_align);
      }
      case 0x13:  // def_cfa_offset_sf
        state.cfa_offset = in.sleb() * cie_.data_align;
        return true;
      case 0x14:    // val_offset
      case 0x15: {  // val_offset_sf: a sleb is as long
        const uint64_t which = in.uleb();
        in.uleb();
        return set(which, Rule::kElsewhere, 0);
      }
      case 0x16: {  // val_expression
        const uint64_t which = in.uleb();
        const uint64_t length = in.uleb();
        in.skip(length);
        return set(which, Rule::kElsewhere, 0);
      }
#if defined(__aarch64__)
      case 0x2d:
        return true;  // negate_ra_state
#endif
      case 0x2e:
        in.uleb();
        return true;  // GNU_args_size
      default:
        return false;  // set_loc too: nothing writes it
    }
  }

  bool advance(uint64_t delta) {
    location_ += delta * cie_.code_align;
    return true;
  }

  Rule* rule(uint64_t which, State& of) const {
    return which == kFp ? &of.fp : which == cie_.return_register ? &of.ra : nullptr;
  }
  bool set(uint64_t which, Rule::Where where, int64_t offset) {
    if (which == kSp) state.saves_sp = true;  // the caller's is then not the CFA
    if (Rule* of = rule(which, state)) *of = {where, offset};
    return true;
  }
  bool restore(uint64_t which) {
    Rule* of = rule(which, state);
    if (of != nullptr) *of = *rule(which, initial_);
    return true;
  }

  bool define_cfa(uint64_t which, int64_t offset) {
    state.cfa_known = which == kSp || which == kFp;
    state.cfa = which == kFp ? Cfa::kFrame : Cfa::kStack;
    state.cfa_offset = offset;
    return true;
  }

  /* breg(fp or sp) + offset, dereferenced: what compilers write where they align the stack. */
  bool define_cfa_expression(Bytes& in) {
    const uint64_t length = in.uleb();
    const uint8_t* end = in.at() + length;
    Bytes expression(in.at());
    in.skip(length);
    state.cfa_known = false;
    if (length < 3) return true;
    const uint8_t code = expression.fixed<uint8_t>();
    const int64_t offset = expression.sleb();
    if (code != 0x70 + kFp && code != 0x70 + kSp) return true;
    if (expression.at() + 1 != end || *expression.at() != 0x06) return true;  // deref, and nothing after
    state.cfa_known = true;
    state.cfa = code == 0x70 + kFp ? Cfa::kInFrameSlot : Cfa::kInStackSlot;
    state.cfa_offset = offset;
    return true;
  }

  bool expression(Bytes& in) {
    const uint64_t which = in.uleb();
    const uint64_t length = in.uleb();
    const uint8_t* end = in.at() + length;
    Bytes expression(in.at());
    in.skip(length);
    Rule found = {Rule::kElsewhere, 0};
    if (length >= 2 && expression.fixed<uint8_t>() == 0x70 + kFp) {
      const int64_t offset = expression.sleb();
      if (expression.at() == end) found = {Rule::kAtFrame, offset};
    }
    return set(which, found.where, found.offset);
  }

  const Cie& cie_;
  uintptr_t location_;
  State initial_ = state;
  State remembered_[kRemembered];
  unsigned depth_ = 0;
};

bool fits(int64_t offset) { return offset >= INT32_MIN && offset <= INT32_MAX; }

Row to_row(const State& state) {
  Row row = {};
  if (state.ra.where == Rule::kUndefined) {
    row.kind = Kind::kEnd;
    return row;
  }
  const bool simple = state.cfa_known && !state.saves_sp && state.ra.where == Rule::kAtCfa && fits(state.cfa_offset) &&
                      fits(state.ra.offset) && fits(state.fp.offset) && state.fp.where != Rule::kElsewhere;
  if (!simple) return row;
  row.kind = Kind::kStep;
  row.cfa = state.cfa;
  row.cfa_offset = static_cast<int32_t>(state.cfa_offset);
  row.ra_offset = static_cast<int32_t>(state.ra.offset);
  row.fp_offset = static_cast<int32_t>(state.fp.offset);
  row.fp = state.fp.where == Rule::kAtCfa     ? Saved::kAtCfa
           : state.fp.where == Rule::kAtFrame ? Saved::kAtFrame
                                              : Saved::kSame;
  return row;
}

/* A signal's return without call frame information: the kernel's frame lies above, and libgcc knows its shape. */
bool is_signal_return(uintptr_t pc) {
#if defined(__aarch64__)
  constexpr uint8_t kCode[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4};
#else
  constexpr uint8_t kCode[] = {0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05};
#endif
  return memcmp(reinterpret_cast<const void*>(pc), kCode, sizeof kCode) == 0;
}

}  // namespace

Row row_of(uintptr_t pc) {
  FdeBases bases;
  Row row = {};
  const uint8_t* fde = static_cast<const uint8_t*>(_Unwind_Find_FDE(reinterpret_cast<void*>(pc - 1), &bases));
  if (fde == nullptr) {
    if (!is_signal_return(pc)) row.kind = Kind::kEnd;
    return row;
  }
  Bytes in(fde);
  const uint32_t length = in.fixed<uint32_t>();
  if (length == 0xffffffff) return row;
  const uint8_t* end = in.at() + length;
  const uint8_t* field = in.at();
  Cie cie;
  if (!read_cie(field - in.fixed<int32_t>(), cie) || cie.signal) return row;
  if (!in.skip_encoded(cie.pointers) || !in.skip_encoded(cie.pointers & 0x0f)) return row;
  if (cie.augmented) in.skip(in.uleb());
  Program program(cie, reinterpret_cast<uintptr_t>(bases.function));
  if (!program.run(cie.program, cie.end, UINTPTR_MAX)) return row;
  program.keep_initial();
  return program.run(in.at(), end, pc) ? to_row(program.state) : row;
}

}  // namespace etmem::cfi
