/* A program with no libc at all: there is no dlsym to ask, and nothing is missing at link time. */
#include "etmem/etmem.h"

size_t strlen(const char* text) {
  size_t length = 0;
  while (text[length] != 0) ++length;
  return length;
}

void _start(void);
void _start(void) {
  const etmem_id scope = etmem_begin("work");
  const long status = scope == 0 && etmem_get_api() == NULL && !etmem_recording() ? 0 : 1;
  etmem_end(scope);
#if defined(__x86_64__)
  __asm__ volatile("syscall" : : "a"(60), "D"(status));
#elif defined(__aarch64__)
  register long number __asm__("x8") = 93;
  register long first __asm__("x0") = status;
  __asm__ volatile("svc 0" : : "r"(number), "r"(first));
#endif
  for (;;) {}
}
