/* A static program that uses dlsym itself: the header's weak reference must not make this one weak. */
#include <dlfcn.h>
#include <stdio.h>

#include "etmem/etmem.h"

int main(void) {
  void* (*volatile look)(void*, const char*) = dlsym;
  if (look == NULL) return 3;
  look(NULL, "no such symbol");
  etmem_end(etmem_begin("work"));
  printf("%d\n", etmem_recording());
  return 0;
}
