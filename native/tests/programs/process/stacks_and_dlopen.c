/* One thread opens and closes a library while others allocate and record their call stacks: an unwinder that takes the
 * loader's lock, or a lock of its own around libc's, would stop here. */
#include <dlfcn.h>

#include "allocate.h"
#include "etmem/etmem.h"

static volatile int done;
static const struct etmem_api* api;

static void* load(void* unused) {
  (void)unused;
  while (!done) {
    void* library = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
    void* other = dlopen(PLUGIN, RTLD_NOW | RTLD_LOCAL);
    if (other != NULL) dlclose(other);
    if (library != NULL) dlclose(library);
  }
  return NULL;
}

static void* work(void* unused) {
  (void)unused;
  const etmem_id scope = api->scope_begin(ETMEM_TAG, api->string("work", 4), 0, 0, ETMEM_RECORD_STACKS);
  for (int i = 0; i < 2000; ++i) allocate(1, 5001);
  api->scope_end(scope, 0);
  return NULL;
}

int main(void) {
  api = (const struct etmem_api*)dlsym(RTLD_DEFAULT, "etmem_api_v1");
  if (api == NULL) return 3;
  alarm(60);  // a deadlock ends with SIGALRM
  pthread_t loader, workers[2];
  pthread_create(&loader, NULL, load, NULL);
  for (int i = 0; i < 2; ++i) pthread_create(&workers[i], NULL, work, NULL);
  for (int i = 0; i < 2; ++i) pthread_join(workers[i], NULL);
  done = 1;
  pthread_join(loader, NULL);
  return 0;
}
