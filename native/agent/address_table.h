/* From addresses (or thread ids) to small numbers. */
#ifndef ETMEM_ADDRESS_TABLE_H_
#define ETMEM_ADDRESS_TABLE_H_

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

namespace etmem {

/* Open addressing, linear probing, at most half full; erasing shifts back what it would cut off. */
class AddressTable {
 public:
  struct Slot {
    uint64_t key;
    uint64_t value;  // plus one: zero marks a free slot
  };

  bool init(unsigned bits) {
    slots_ = static_cast<Slot*>(calloc(size_t{1} << bits, sizeof(Slot)));
    shift_ = 64 - bits;
    mask_ = (uint64_t{1} << bits) - 1;
    used_ = 0;
    return slots_ != nullptr;
  }
  void destroy() { free(slots_); }

  Slot* find(uint64_t key) const {
    for (uint64_t at = home(key); slots_[at].value != 0; at = (at + 1) & mask_) {
      if (slots_[at].key == key) return &slots_[at];
    }
    return nullptr;
  }

  /* The key must not be there. False without memory; the table is then as it was. */
  bool insert(uint64_t key, uint64_t value) {
    if (used_ > mask_ / 2 && !grow()) return false;
    place(key, value + 1);
    ++used_;
    return true;
  }

  /* Most of the time is waiting for a slot: asked for some events ahead, it is there. */
  void prefetch(uint64_t key) const { __builtin_prefetch(&slots_[home(key)], 1); }

  void erase(Slot* slot) {
    uint64_t hole = static_cast<uint64_t>(slot - slots_);
    for (uint64_t at = (hole + 1) & mask_; slots_[at].value != 0; at = (at + 1) & mask_) {
      if (((at - home(slots_[at].key)) & mask_) >= ((at - hole) & mask_)) {
        slots_[hole] = slots_[at];
        hole = at;
      }
    }
    slots_[hole].value = 0;
    --used_;
  }

 private:
  /* Two rounds: addresses chosen to collide under one multiplication would make each look-up a walk. */
  uint64_t home(uint64_t key) const {
    key *= 0x9e3779b97f4a7c15u;
    key ^= key >> 32;
    return key * 0xd6e8feb86659fd93u >> shift_;
  }

  void place(uint64_t key, uint64_t value) {
    uint64_t at = home(key);
    while (slots_[at].value != 0) at = (at + 1) & mask_;
    slots_[at] = {key, value};
  }

  bool grow() {
    AddressTable bigger;
    if (!bigger.init(64 - shift_ + 1)) return false;
    for (uint64_t at = 0; at <= mask_; ++at) {
      if (slots_[at].value != 0) bigger.place(slots_[at].key, slots_[at].value);
    }
    bigger.used_ = used_;
    free(slots_);
    *this = bigger;
    return true;
  }

  Slot* slots_ = nullptr;
  uint64_t mask_ = 0;
  uint64_t used_ = 0;
  unsigned shift_ = 0;
};

}  // namespace etmem

#endif  // ETMEM_ADDRESS_TABLE_H_
