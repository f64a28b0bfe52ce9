/* A file of 8 units, mapped from its third: a file mapping, however it is shared. */
#include <fcntl.h>
#include "mapping.h"
int main(int argc, char** argv) {
  int fd = open(argc > 1 ? argv[1] : "", O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, 8 * UNIT) != 0) return 3;
  sure(mmap(NULL, 5 * UNIT, PROT_READ, MAP_PRIVATE, fd, 3 * UNIT));
  sure(mmap(NULL, 2 * UNIT, ACCESS, MAP_SHARED, fd, 0));
  return close(fd);
}
