/* Closes every descriptor, as daemons do, and opens a file of its own under the numbers that are free now. */
#include "allocate.h"
#include <fcntl.h>
int main(int argc, char** argv) {
  for (int fd = 3; fd < 4096; ++fd) close(fd);
  const int own = open(argc > 1 ? argv[1] : "/dev/null", O_RDWR | O_CREAT | O_TRUNC, 0644);
  for (int fd = 3; fd < 1000; ++fd) dup2(own, fd);
  allocate(100000, 5001);
  return 0;
}
