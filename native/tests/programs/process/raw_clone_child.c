/* As fork_child.c, past pthread_atfork. */
#include "allocate.h"
int main(void) {
  allocate(100, 5001);
  const pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
  if (child == 0) {
    allocate(100, 6001);
    _exit(0);
  }
  waitpid(child, NULL, 0);
  allocate(100, 5001);
  return 0;
}
