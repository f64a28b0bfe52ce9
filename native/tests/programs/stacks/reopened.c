/* FIRST SECOND: two libraries, one after the other at one address; each calls a function that allocates. Prints how
 * often the second was where the first had been. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void* volatile kept;
static void* place;

static void allocates(void) {
  place = __builtin_return_address(0);
  kept = malloc(100);
  free(kept);
}

static void* call(const char* path) {
  void* library = dlopen(path, RTLD_NOW);
  if (library == NULL) exit(3);
  void (*call_back)(void (*)(void)) = (void (*)(void (*)(void)))dlsym(library, "call_back");
  call_back(allocates);
  dlclose(library);
  return place;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  int same = 0;
  for (int i = 0; i < 20; ++i) {
    void* first = call(argv[1]);
    same += first == call(argv[2]);
  }
  printf("%d\n", same);
  return 0;
}
