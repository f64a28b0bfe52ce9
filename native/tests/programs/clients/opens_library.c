/* Opens a client, private to itself, when recording has long begun. */
#include <dlfcn.h>
#include <stddef.h>

int main(void) {
  void* library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
  int (*work)(void) = NULL;
  if (library != NULL) *(void**)&work = dlsym(library, "work");
  return work == NULL ? 3 : work() == 1 ? 0 : 4;
}
