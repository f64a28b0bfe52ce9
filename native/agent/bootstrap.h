/* Memory for the moment in which the next malloc is not known yet: dlsym itself may allocate. */
#pragma once

#include <stddef.h>

namespace etmem::bootstrap {

/* Zeroed, 16-byte aligned; nullptr when the static arena is used up. */
void* allocate(size_t bytes);
constexpr size_t kBytes = 128 * 1024;
extern char arena[kBytes];
inline bool owns(const void* block) { return block >= arena && block < arena + kBytes; }
/* `bytes`, or less when the arena ends before that. */
size_t at_most(const void* block, size_t bytes);

}  // namespace etmem::bootstrap
