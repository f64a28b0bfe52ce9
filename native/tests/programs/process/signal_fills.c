/* A timer's handler fills most of the thread's chunk, wherever in a hook the signal comes. What the program itself did
 * is there all the same: as many blocks of 5001 bytes as it prints. */
#include "allocate.h"
#include <sys/time.h>
static volatile sig_atomic_t handled;
static char* page;
static void on_alarm(int unused) {
  (void)unused;
  for (int i = 0; i < 1500; ++i) madvise(page, 4096, MADV_DONTNEED);
  ++handled;
}
int main(void) {
  page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  struct sigaction action = {.sa_handler = on_alarm};
  sigaction(SIGALRM, &action, NULL);
  long blocks = 0;
  for (int armed = 0; handled < 150; ++blocks) {
    if (armed == handled) { /* not before the last one is done: two in a row would fill the chunk twice */
      const struct itimerval once = {{0, 0}, {0, 300}};
      setitimer(ITIMER_REAL, &once, NULL);
      ++armed;
    }
    allocate(1, 5001);
  }
  printf("%ld\n", blocks);
  fflush(stdout);
  return 0;
}
