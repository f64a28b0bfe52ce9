/* A client that is opened: work() reports, looked() says whether it has asked for the table yet. */
#include "etmem/etmem.h"

static struct etmem_heap pool = ETMEM_HEAP(NAME, "host", "other");

int work(void) {
  static char memory[64];
  const etmem_id scope = etmem_begin(NAME);
  etmem_heap_alloc(&pool, memory, sizeof memory);
  etmem_heap_free(&pool, memory);
  etmem_end(scope);
  return etmem_recording();
}

int looked(void) { return etmem_client_v1.looked != 0; }
