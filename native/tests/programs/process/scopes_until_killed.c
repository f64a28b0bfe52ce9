/* Four threads open and close scopes and allocate in them without end; the process kills itself after so many
 * milliseconds. */
#include "allocate.h"

#include <dlfcn.h>
#include <pthread.h>

#include "etmem/etmem.h"

static void* work(void* given) {
  const struct etmem_api* api = (const struct etmem_api*)given;
  const etmem_id name = api->string("native_call_add.out", 19);
  for (long i = 0;; ++i) {
    const etmem_id scope = api->scope_begin(ETMEM_INSTRUCTION, name, 0, i, 0);
    if (i % 3 == 0) free(malloc(100));
    api->scope_end(scope, 0);
  }
}

int main(int argc, char** argv) {
  void* api = dlsym(RTLD_DEFAULT, "etmem_api_v1");
  if (api == NULL) return 2;
  pthread_t thread;
  for (int i = 0; i < 4; ++i) pthread_create(&thread, NULL, work, api);
  const long nanoseconds = (argc > 1 ? atol(argv[1]) : 1) * 1000000;
  const struct timespec time = {0, nanoseconds};
  nanosleep(&time, NULL);
  kill(getpid(), SIGKILL);
}
