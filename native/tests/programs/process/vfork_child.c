/* A vfork child shares our memory until it execs: what it allocates is ours. */
#include "allocate.h"
int main(void) {
  allocate(100, 5001);
  const pid_t child = vfork();
  if (child == 0) {
    execl("/bin/true", "true", (char*)NULL);
    _exit(1);
  }
  waitpid(child, NULL, 0);
  allocate(100, 5001);
  return 0;
}
