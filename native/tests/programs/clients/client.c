/* Says a little of everything, and prints whether it was recorded. Compiled as C and C++, and linked in every way. */
#include <stdio.h>

#include "etmem/etmem.h"

static struct etmem_heap pool = ETMEM_HEAP("pool", "host", "other");
static struct etmem_heap frames = ETMEM_DEVICE_HEAP(ETMEM_GPU_MEMORY, "frames", "host", "other");
static char memory[4096];

int main(void) {
  const etmem_id scope = etmem_begin_tag("work", "workspace");
  etmem_heap_alloc(&pool, memory, 4096);
  etmem_heap_alloc(&frames, (const void*)0x10, 1 << 20);
  etmem_heap_free(&frames, (const void*)0x10);
  etmem_counter("depth", ETMEM_NUMBER, -3);
  etmem_label(memory, 100, "table");
  etmem_claim(memory, 4096, "host", "inputs_outputs", "input");
  etmem_heap_reset(&pool);
  etmem_end(scope);
  printf("%d\n", etmem_recording());
  return 0;
}
