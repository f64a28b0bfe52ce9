/* What a hooks library gives to the agent. It is compiled for one ExecuTorch and opened when a stub is reached. */
#ifndef ETMEM_HOOKS_H_
#define ETMEM_HOOKS_H_

#include "etmem/etmem.h"

#define ETMEM_HOOKS_VERSION 1

#ifdef __cplusplus
extern "C" {
#endif

struct etmem_hook {
  const char* symbol; /* the mangled name it stands in front of */
  void* function;
};

struct etmem_hooks {
  uint32_t version;
  const char* build_id; /* of the library that it was compiled for */
  uint32_t count;
  const struct etmem_hook* entries;
  /* Called once before any hook; original(runtime, symbol) is the runtime's own definition, or null. */
  void (*bind)(const struct etmem_api* api, void* runtime, void* (*original)(void* runtime, const char* symbol));
};

/* Exported as `etmem_hooks_v1`. */

#ifdef __cplusplus
}
#endif
#endif /* ETMEM_HOOKS_H_ */
