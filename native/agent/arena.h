/* The agent's own memory: bump allocation from private mappings, never freed, never from malloc. */
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace etmem::arena {

/* 16-byte aligned, zeroed; nullptr when the system has no memory. Thread-safe. */
void* allocate(size_t bytes);

template <typename T>
T* allocate_array(size_t count) {
  return static_cast<T*>(allocate(sizeof(T) * count));
}

/* Bytes mapped so far. */
uint64_t mapped_bytes();

/* Calls visit(address, bytes) for each mapping made since the last call; used to name them in the trace. */
void visit_new(void (*visit)(uint64_t address, uint64_t bytes));
void visit_again();

}  // namespace etmem::arena
