/* A timer's handler allocates: its events are kept, or counted as dropped; nothing hangs. malloc itself is not
 * signal-safe, so the handler runs only while the program is outside of it. */
#include "allocate.h"
#include <sys/time.h>
static volatile sig_atomic_t inside, handled;
static void on_alarm(int unused) {
  (void)unused;
  if (inside) return;
  sink = malloc(7001);
  free(sink);
  ++handled;
}
int main(void) {
  struct sigaction action = {.sa_handler = on_alarm};
  sigaction(SIGALRM, &action, NULL);
  const struct itimerval every = {{0, 200}, {0, 200}};
  setitimer(ITIMER_REAL, &every, NULL);
  volatile unsigned long work = 0;
  while (handled < 200) {
    inside = 1;
    allocate(1, 5001);
    inside = 0;
    for (int i = 0; i < 1000; ++i) work += (unsigned long)i;
  }
  const struct itimerval never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &never, NULL);
  printf("%d\n", (int)handled);
  return 0;
}
