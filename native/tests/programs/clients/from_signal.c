/* Reports from a signal handler, also one that interrupts a report. */
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include "etmem/etmem.h"

static struct etmem_heap pool = ETMEM_HEAP("pool", "host", "other");
static volatile sig_atomic_t handled;
static char memory[2];

static void handle(int number) {
  (void)number;
  const etmem_id scope = etmem_begin("in handler");
  etmem_heap_alloc(&pool, &memory[1], 1);
  etmem_heap_free(&pool, &memory[1]);
  etmem_counter("handled", ETMEM_NUMBER, handled);
  etmem_end(scope);
  ++handled;
}

int main(void) {
  const struct itimerval every = {{0, 1000}, {0, 1000}};
  etmem_heap_alloc(&pool, &memory[0], 1);
  alarm(60); /* a deadlock ends with SIGALRM */
  signal(SIGVTALRM, handle);
  setitimer(ITIMER_VIRTUAL, &every, NULL);
  while (handled < 100) {
    const etmem_id scope = etmem_begin("in main");
    etmem_counter("depth", ETMEM_NUMBER, 1);
    etmem_end(scope);
  }
  return 0;
}
