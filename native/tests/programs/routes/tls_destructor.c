#include "route.h"
#include <pthread.h>
static pthread_key_t key;
static void at_exit(void* unused) { (void)unused; free(keep(malloc(SIZE))); }
static void* thread(void* unused) {
  (void)unused;
  pthread_setspecific(key, &key);
  return NULL;
}
void route(void) {
  pthread_t t;
  pthread_key_create(&key, at_exit);
  if (pthread_create(&t, NULL, thread, NULL) == 0) pthread_join(t, NULL);
}
