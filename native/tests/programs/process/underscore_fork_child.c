/* As fork_child.c with _Fork, which runs no atfork handlers. */
#include "allocate.h"
int main(void) {
  allocate(100, 5001);
  const pid_t child = _Fork();
  if (child == 0) {
    allocate(100, 6001);
    _exit(0);
  }
  waitpid(child, NULL, 0);
  allocate(100, 5001);
  return 0;
}
