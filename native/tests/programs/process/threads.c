/* 32 threads allocate at once, each a size of its own; blocks cross from one thread to the next. */
#include "allocate.h"
enum { THREADS = 32, ROUNDS = 2000 };
static void* volatile mailbox[THREADS];
static void* work(void* number) {
  const int i = (int)(long)number;
  for (int k = 0; k < ROUNDS; ++k) {
    void* mine = malloc(1000 + (size_t)i);
    free(__atomic_exchange_n(&mailbox[(i + k) % THREADS], mine, __ATOMIC_ACQ_REL));
  }
  return NULL;
}
int main(void) {
  pthread_t threads[THREADS];
  for (long i = 0; i < THREADS; ++i) pthread_create(&threads[i], NULL, work, (void*)i);
  for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
  for (int i = 0; i < THREADS; ++i) free(mailbox[i]);
  return 0;
}
