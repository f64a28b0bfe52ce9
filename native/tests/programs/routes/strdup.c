#include "route.h"
#include <string.h>
void route(void) {
  static char text[SIZE];
  memset(text, 'a', SIZE - 1);
  free(keep(strdup(text)));
}
