/* Four threads allocate without end; the process kills itself after so many milliseconds. */
#include "allocate.h"
#include <pthread.h>
static void* work(void* unused) {
  (void)unused;
  for (;;) {
    void* volatile block = malloc(100);
    free(block);
  }
}
int main(int argc, char** argv) {
  pthread_t thread;
  for (int i = 0; i < 4; ++i) pthread_create(&thread, NULL, work, NULL);
  const long nanoseconds = (argc > 1 ? atol(argv[1]) : 1) * 1000000;
  const struct timespec time = {0, nanoseconds};
  nanosleep(&time, NULL);
  kill(getpid(), SIGKILL);
}
