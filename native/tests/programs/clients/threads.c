/* Eight threads report of one heap, which none has registered before, and of scopes of their own. */
#include <pthread.h>

#include "etmem/etmem.h"

enum { kThreads = 8, kRounds = 500 };

static struct etmem_heap pool = ETMEM_HEAP("pool", "host", "other");
static char memory[kThreads][kRounds];
static pthread_barrier_t barrier;

static void* report(void* own) {
  char* places = (char*)own;
  int i;
  pthread_barrier_wait(&barrier);
  for (i = 0; i < kRounds; ++i) {
    const etmem_id scope = etmem_begin("work");
    etmem_heap_alloc(&pool, &places[i], 1);
    etmem_counter("round", ETMEM_NUMBER, i);
    etmem_heap_free(&pool, &places[i]);
    etmem_end(scope);
  }
  return NULL;
}

int main(void) {
  pthread_t threads[kThreads];
  int i;
  pthread_barrier_init(&barrier, NULL, kThreads);
  for (i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, report, memory[i]);
  for (i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  return 0;
}
