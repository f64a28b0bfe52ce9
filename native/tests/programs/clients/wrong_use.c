/* Everything that a client can do wrong. It must live. */
#include <pthread.h>

#include "etmem/etmem.h"

static struct etmem_heap pool = ETMEM_HEAP("pool", "host", "other");
static struct etmem_heap again = ETMEM_HEAP("pool", "host", "other");
static char memory[64];

static void* end_elsewhere(void* scope) {
  etmem_end(*(etmem_id*)scope);
  return NULL;
}

int main(void) {
  pthread_t thread;
  etmem_id outer = etmem_begin("outer"), scope;
  const struct etmem_api* api = etmem_get_api();
  if (api == NULL) return 3;
  etmem_begin("inner");
  etmem_end(outer);
  etmem_end(outer);
  scope = etmem_begin("elsewhere");
  pthread_create(&thread, NULL, end_elsewhere, &scope);
  pthread_join(thread, NULL);
  etmem_end(scope);
  etmem_end(12345678);
  etmem_begin_tag("no category", "activatoins");

  etmem_heap_free(&pool, memory);
  etmem_heap_alloc(&pool, memory, 64);
  etmem_heap_alloc(&again, memory, 64);
  etmem_heap_alloc(&pool, (void*)~(uintptr_t)0, 64);
  etmem_heap_alloc(&pool, memory, (size_t)1 << 60);
  api->heap_alloc(4242, memory, 1);
  etmem_label((void*)~(uintptr_t)0, 64, "beyond");
  etmem_claim(memory, ~(size_t)0, "nobody", "nothing", "beyond");
  etmem_label(memory, 64, "caf\xc3\xa9 \xff\x01");
  api->scope_end(api->scope_begin(77, api->string("strange", 7), 0, 0, 0), 0);
  api->counter(0, 99, 5);
  api->heap_alloc(api->heap_open(&api, 99, 0, 0, 0), memory, 1);
  for (int i = 0; i < 1000; ++i) etmem_end(0xffffffff);
  for (int i = 0; i < 1000; ++i) etmem_begin("deep");
  return 0;
}
