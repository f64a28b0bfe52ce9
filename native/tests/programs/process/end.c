/* Ends in the way its argument names, with every record made before that readable. */
#include "allocate.h"
int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "return";
  allocate(1000, 5001);
  if (strcmp(how, "exit") == 0) exit(0);
  if (strcmp(how, "_exit") == 0) _exit(0);
  if (strcmp(how, "abort") == 0) abort();
  if (strcmp(how, "segv") == 0) raise(SIGSEGV);
  if (strcmp(how, "kill") == 0) kill(getpid(), SIGKILL);
  if (strcmp(how, "exec") == 0) execl("/bin/true", "true", (char*)NULL);
  return 0;
}
