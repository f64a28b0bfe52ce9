/* System calls that the agent makes for itself, past its own hooks. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

namespace etmem::sys {

inline void* map(size_t bytes, int flags, int fd = -1, off_t offset = 0) {
  const long at = syscall(SYS_mmap, nullptr, bytes, PROT_READ | PROT_WRITE, flags, fd, offset);
  return at == -1 ? nullptr : reinterpret_cast<void*>(at);
}

inline void* map_private(size_t bytes) { return map(bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE); }

/* Makes the pages of a mapping present and writable. Before Linux 5.14 nothing is done. */
inline void populate(void* address, size_t bytes) {
  constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE
  syscall(SYS_madvise, address, bytes, kPopulateWrite);
}

/* Writes `head` and then `body` at an offset, all of it or false. */
inline bool write_at(int fd, const void* head, size_t head_bytes, const void* body, size_t body_bytes, off_t offset) {
  size_t done = 0;
  while (done < head_bytes + body_bytes) {
    const size_t of_body = done < head_bytes ? 0 : done - head_bytes;
    iovec parts[2] = {{const_cast<char*>(static_cast<const char*>(head)) + done, head_bytes - done},
                      {const_cast<char*>(static_cast<const char*>(body)) + of_body, body_bytes - of_body}};
    const bool both = done < head_bytes;
    const off_t at = offset + static_cast<off_t>(done);
    const long n = syscall(SYS_pwritev, fd, both ? parts : parts + 1, both ? 2 : 1, at, 0L);
    if (n == -1 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

inline int open(const char* path, int flags, int mode = 0) {
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, mode));
}

inline uint32_t tid() { return static_cast<uint32_t>(syscall(SYS_gettid)); }

inline uint64_t now_ns(clockid_t clock = CLOCK_MONOTONIC) {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}

/* Reads at most `capacity` bytes of a file; the bytes read, or -1. */
inline ssize_t read_file(const char* path, char* buffer, size_t capacity) {
  const int fd = open(path, O_RDONLY);
  if (fd < 0) return -1;
  size_t length = 0;
  while (length < capacity) {
    const ssize_t n = ::read(fd, buffer + length, capacity - length);
    if (n <= 0) break;
    length += static_cast<size_t>(n);
  }
  ::close(fd);
  return static_cast<ssize_t>(length);
}

/* Appends decimal digits to a string that has room for 20 more. */
inline void append_number(char* out, uint64_t value) {
  char digits[20];
  size_t n = 0;
  do {
    digits[n++] = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value != 0);
  while (*out != 0) ++out;
  while (n > 0) *out++ = digits[--n];
  *out = 0;
}

}  // namespace etmem::sys
