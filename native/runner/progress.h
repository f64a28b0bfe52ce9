/* One line per step to the descriptor that the launcher gave, or nowhere (-1). Allocates nothing: a line
 * that allocated would change what is measured between two phases. */
#pragma once

#include <unistd.h>
#include <cstdarg>
#include <cstdio>

namespace etmem::runner {

class Progress {
 public:
  explicit Progress(int descriptor) : descriptor_(descriptor) {}

  __attribute__((format(printf, 2, 3))) void operator()(const char* format, ...) const {
    if (descriptor_ < 0) return;
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof(line) - 1, format, arguments);
    va_end(arguments);
    if (length < 0) return;
    if (length > static_cast<int>(sizeof(line)) - 2) length = sizeof(line) - 2;
    line[length] = '\n';
    // A launcher that went away is no reason to stop measuring.
    if (write(descriptor_, line, static_cast<size_t>(length) + 1) < 0) return;
  }

 private:
  int descriptor_;
};

}  // namespace etmem::runner
