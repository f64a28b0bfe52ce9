/* COUNT scopes of instructions inside an inference, as the event tracer opens them. */
#include <dlfcn.h>
#include <stdlib.h>

#include "etmem/etmem.h"

__attribute__((noinline)) void run_scopes(const struct etmem_api* api, etmem_id name, long count) {
  for (long i = 0; i < count; ++i) api->scope_end(api->scope_begin(ETMEM_INSTRUCTION, name, 0, i, 0), 0);
}

int main(int argc, char** argv) {
  const struct etmem_api* api = (const struct etmem_api*)dlsym(RTLD_DEFAULT, "etmem_api_v1");
  if (api == NULL || argc != 2) return 2;
  const etmem_id scope = api->scope_begin(ETMEM_INFERENCE, api->string("forward", 7), 1, 0, 0);
  run_scopes(api, api->string("native_call_add.out", 19), atol(argv[1]));
  api->scope_end(scope, 0);
  return 0;
}
