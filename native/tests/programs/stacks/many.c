/* 65,536 blocks, each by a way of its own through sixteen calls. */
#include <dlfcn.h>
#include <stdlib.h>

#include "etmem/etmem.h"

static void* volatile kept;

static void way(unsigned bits, int depth) {
  if (depth == 0) {
    kept = malloc(100);
    free(kept);
  } else if (bits & 1) {
    way(bits >> 1, depth - 1);
    __asm__ volatile("");
  } else {
    way(bits >> 1, depth - 1);
    __asm__ volatile("nop");
  }
}

int main(void) {
  const struct etmem_api* api = (const struct etmem_api*)dlsym(RTLD_DEFAULT, "etmem_api_v1");
  if (api == NULL) return 2;
  const etmem_id scope = api->scope_begin(ETMEM_INFERENCE, api->string("ways", 4), 1, 0, 0);
  for (unsigned bits = 0; bits < 1 << 16; ++bits) way(bits, 16);
  api->scope_end(scope, 0);
  return 0;
}
