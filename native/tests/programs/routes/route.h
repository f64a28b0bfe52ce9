/* One allocation route a program. Each allocates SIZE bytes, touches them, and where it can gives them back.
 *
 * `keep` is volatile so that no compiler removes the pair. What no hook sees is kept forever: it must show in the
 * balance's unaccounted line of the snapshot at the end.
 */
#ifndef ROUTE_H_
#define ROUTE_H_
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "etmem/etmem.h"

enum { SIZE = 3 * 1024 * 1024 + 4096 };

static void* volatile kept;

static inline void* keep(void* p) {
  memset(p, 1, SIZE - 100);
  kept = p;
  return p;
}

static inline void keep_forever(void* p) { keep(p); }

#ifdef __cplusplus
extern "C"
#endif
    void route(void);

/* The route as an inference, so that it has a balance after it. A library of routes is called here by Python. */
#ifdef __cplusplus
extern "C"
#endif
    __attribute__((visibility("default"))) int run_route(const struct etmem_api* api) {
  if (api == NULL) {
    route();
    return 0;
  }
  const etmem_id scope = api->scope_begin(ETMEM_INFERENCE, api->string("route", 5), 1, 0, 0);
  route();
  api->scope_end(scope, 0);
  api->snapshot(api->string("inference", 9), scope);
  return 0;
}

int main(void) { return run_route((const struct etmem_api*)dlsym(RTLD_DEFAULT, "etmem_api_v1")); }
#endif
