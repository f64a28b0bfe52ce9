/* Today's client and an agent whose table ends where the first one did: what it lacks does nothing. */
#include <dlfcn.h>
#include <string.h>

#include "etmem/etmem.h"

static struct etmem_heap pool = ETMEM_HEAP("pool", "host", "other");
static struct etmem_heap frames = ETMEM_DEVICE_HEAP(ETMEM_GPU_MEMORY, "frames", "host", "other");

int main(void) {
  static struct etmem_api shorter;
  static char memory[64];
  const void* table = dlsym(RTLD_DEFAULT, "etmem_api_v1");
  if (table == NULL) return 3;
  memset(&shorter, 0xff, sizeof shorter); /* a call beyond the end would jump to nowhere */
  memcpy(&shorter, table, offsetof(struct etmem_api, heap_open));
  shorter.bytes = offsetof(struct etmem_api, heap_open);
  etmem_set_api(&shorter);
  etmem_heap_alloc(&pool, memory, sizeof memory);
  etmem_heap_alloc(&frames, memory, sizeof memory);
  etmem_counter("depth", ETMEM_NUMBER, 1);
  etmem_label(memory, 1, "table");
  return pool.id != 0 && frames.id == 0 ? 0 : 4;
}
