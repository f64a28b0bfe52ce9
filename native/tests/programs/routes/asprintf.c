#include "route.h"
#include <stdio.h>
void route(void) {
  char* text = NULL;
  if (asprintf(&text, "%*d", SIZE - 1, 7) > 0) free(keep(text));
}
