/* A client as it was compiled against the first header: this text is frozen, whatever becomes of the header. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct table {
  uint32_t version, bytes;
  int (*recording)(void);
  uint32_t (*string)(const char*, size_t);
  uint32_t (*scope_begin)(uint32_t, uint32_t, int64_t, int64_t, uint32_t);
  void (*scope_end)(uint32_t, int);
  void (*claim)(const void*, size_t, uint32_t, uint32_t, uint32_t);
  uint32_t (*heap_register)(uint32_t, uint32_t, uint32_t);
  void (*heap_alloc)(uint32_t, const void*, size_t);
  void (*heap_free)(uint32_t, const void*);
  void (*heap_reset)(uint32_t);
  uint32_t (*segment)(const void*);
  void (*segment_free)(uint32_t);
  void (*note)(uint32_t, uint32_t);
  void (*snapshot)(uint32_t, uint32_t);
  void (*expect_inferences)(uint64_t);
  uint64_t (*remaining_inferences)(void);
  void* (*allocate)(size_t);
  uint32_t (*next_program)(void);
};

static uint32_t string(const struct table* api, const char* text) { return api->string(text, strlen(text)); }

int main(void) {
  static char memory[256];
  const struct table* api = (const struct table*)dlsym(RTLD_DEFAULT, "etmem_api_v1");
  if (api == NULL || api->version != 1 || api->bytes < sizeof *api || !api->recording()) return 3;
  const uint32_t scope = api->scope_begin(7, string(api, "old work"), string(api, "workspace"), 0, 0);
  const uint32_t heap = api->heap_register(string(api, "old pool"), string(api, "host"), string(api, "other"));
  api->heap_alloc(heap, memory, 256);
  api->heap_free(heap, memory);
  api->claim(memory, 256, string(api, "host"), string(api, "inputs_outputs"), 0);
  api->note(string(api, "old.note"), string(api, "kept"));
  api->scope_end(scope, 0);
  return api->allocate(16) != NULL && api->next_program() != 0 ? 0 : 4;
}
