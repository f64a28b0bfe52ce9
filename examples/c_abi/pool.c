/* A pool that tells etmem what it hands out, and what for.
 *
 *   cc -I"$(python -c 'import etmem.capture.build as b; print(b.include_folder())')" pool.c -o pool
 *   ./pool                     # runs the same without etmem
 *   etmem run -- ./pool
 */
#include <stdio.h>
#include <stdlib.h>

#include "etmem/etmem.h"

enum { kPoolBytes = 1 << 20, kWeights = 600 * 1000, kScratch = 100 * 1000 };

static struct etmem_heap heap = ETMEM_HEAP("example pool", "delegate:Example", "workspace");
static struct etmem_heap device = ETMEM_DEVICE_HEAP(ETMEM_NPU_MEMORY, "example npu", "delegate:Example", "workspace");

static char* pool;
static size_t used;

static void* take(size_t bytes) {
  void* block = pool + used;
  used += bytes;
  etmem_heap_alloc(&heap, block, bytes);
  return block;
}

static void give_back(void* block, size_t bytes) {
  etmem_heap_free(&heap, block); /* before anybody else can have it */
  used -= bytes;
}

int main(void) {
  pool = malloc(kPoolBytes);
  if (pool == NULL) return 1;
  etmem_label(pool, kPoolBytes, "the pool itself");

  const etmem_id tag = etmem_begin("packed_weights");
  void* weights = take(kWeights);
  etmem_end(tag);

  etmem_heap_alloc(&device, (const void*)0x1000, 2 << 20); /* an address of the device */
  for (int i = 0; i < 3; ++i) {
    void* scratch = take(kScratch);
    etmem_counter("pool in use", ETMEM_BYTES, (int64_t)used);
    give_back(scratch, kScratch);
  }
  etmem_heap_free(&device, (const void*)0x1000);
  give_back(weights, kWeights);
  free(pool);
  printf("recorded: %s\n", etmem_recording() ? "yes" : "no");
  return 0;
}
