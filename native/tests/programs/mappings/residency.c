/* Memory of a delegate, and what of it is resident: all, less what DONTNEED gave back, less what was unmapped. */
#include <dlfcn.h>
#include "etmem/etmem.h"
#include "mapping.h"

static const struct etmem_api* api;

static etmem_id name(const char* text) { return api->string(text, strlen(text)); }

static void snapshot(const char* label) { api->snapshot(name(label), 0); }

int main(void) {
  api = (const struct etmem_api*)dlsym(RTLD_DEFAULT, "etmem_api_v1");
  if (api == NULL) return 4;
  etmem_id load = api->scope_begin(ETMEM_METHOD_LOAD, name("forward"), 1, 0, 0);
  etmem_id delegate = api->scope_begin(ETMEM_DELEGATE, name("Test"), 0, 0, 0);
  char* p = touched(20);
  char* heap = malloc(7 * UNIT);
  memset(heap, 1, 7 * UNIT);
  api->scope_end(delegate, 0);
  snapshot("all");
  madvise(p + UNIT, 8 * UNIT, MADV_DONTNEED);
  snapshot("advised");
  memset(p + UNIT, 2, 3 * UNIT);
  snapshot("touched again");
  munmap(p + 10 * UNIT, 10 * UNIT);
  snapshot("unmapped");
  free(heap);
  snapshot("freed");
  api->scope_end(load, 0);
  return 0;
}
