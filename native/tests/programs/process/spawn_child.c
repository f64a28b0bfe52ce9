/* posix_spawn of a program that allocates. */
#include "allocate.h"
extern char** environ;
int main(int argc, char** argv) {
  allocate(100, 5001);
  if (argc > 1) return 0;
  char* arguments[] = {argv[0], "child", NULL};
  pid_t child;
  if (posix_spawn(&child, argv[0], NULL, NULL, arguments, environ) != 0) return 1;
  waitpid(child, NULL, 0);
  allocate(100, 5001);
  return 0;
}
