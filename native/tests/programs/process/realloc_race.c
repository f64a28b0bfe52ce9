/* Two threads reallocate and allocate at once: a block's address is taken by the other thread as soon as it is free. */
#include "allocate.h"
static void* work(void* unused) {
  (void)unused;
  void* p = NULL;
  for (int k = 0; k < 20000; ++k) {
    p = realloc(p, 100 + (size_t)(k * 37 % 4000));
    free(malloc(100 + (size_t)(k * 53 % 4000)));
  }
  free(p);
  return NULL;
}
int main(void) {
  pthread_t other;
  pthread_create(&other, NULL, work, NULL);
  work(NULL);
  pthread_join(other, NULL);
  return 0;
}
