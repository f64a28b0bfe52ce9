#include "trace_file.h"

#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "arena.h"
#include "state.h"
#include "system.h"

namespace etmem::trace_file {

uint64_t g_stamp;

namespace {

using format::ChunkHeader;
using format::Header;
using format::kChunkBytes;
using format::kHeaderBytes;

constexpr int kLowestFd = 900;  // out of the way of programs that count on small numbers
constexpr uint64_t kAheadChunks = 16;

Header unopened;  // so that count_drop works before open
Header* g_header = &unopened;
SpinLock grow_lock;
char g_path[4096];
int g_fd = -1;
dev_t g_device;
ino_t g_inode;
uint64_t g_allocated_chunks;
uint32_t g_next_chunk;

off_t chunk_offset(uint64_t index) { return static_cast<off_t>(kHeaderBytes + index * kChunkBytes); }

void keep_fd_high() {
  const int high = fcntl(g_fd, F_DUPFD_CLOEXEC, kLowestFd);
  if (high < 0) return;  // a low limit on descriptors: the small number must do
  ::close(g_fd);
  g_fd = high;
}

/* Programs close descriptors they do not know (daemons, subprocess); the number may even be another file now. */
bool fd_is_ours() {
  struct stat st;
  if (fstat(g_fd, &st) == 0 && st.st_dev == g_device && st.st_ino == g_inode) return true;
  g_fd = sys::open(g_path, O_RDWR);
  if (g_fd < 0) return false;
  if (fstat(g_fd, &st) != 0 || st.st_dev != g_device || st.st_ino != g_inode) return false;
  keep_fd_high();
  return true;
}

/* Beyond it the kernel sends SIGXFSZ, which would end the program. */
bool exceeds_file_limit(off_t size) {
  rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
         static_cast<rlim_t>(size) > limit.rlim_cur;
}

bool allocate_to(uint64_t chunks) {
  if (!fd_is_ours()) return false;  // also before a chunk that was allocated earlier is mapped
  if (chunks <= g_allocated_chunks) return true;
  /* Allocated before it is mapped: a store into a hole of a full disk is SIGBUS in the program. */
  const uint64_t wanted[] = {chunks + kAheadChunks, chunks};
  for (const uint64_t until : wanted) {
    const off_t from = chunk_offset(g_allocated_chunks);
    if (exceeds_file_limit(chunk_offset(until))) continue;
    if (posix_fallocate(g_fd, from, chunk_offset(until) - from) == 0) {
      g_allocated_chunks = until;
      return true;
    }
  }
  return false;
}

void stop(uint32_t status) {
  __atomic_or_fetch(&g_header->status, status | format::kStopped, __ATOMIC_RELAXED);
  *g_switch = 0;
}

/* With the lock held: for one more chunk. */
bool has_room() {
  if (!recording()) return false;
  if (allocate_to(g_next_chunk + 1)) return true;
  stop(format::kDiskFull);
  return false;
}

void note_progress() {
  g_header->chunks = g_next_chunk;
  g_header->stamps = __atomic_load_n(&g_stamp, __ATOMIC_RELAXED);
  g_header->agent_bytes = arena::mapped_bytes();
}

}  // namespace

Header& header() { return *g_header; }

bool open(const char* path, uint32_t flags) {
  const size_t length = strlen(path);
  if (length >= sizeof g_path) {
    errno = ENAMETOOLONG;
    return false;
  }
  memcpy(g_path, path, length + 1);
  if (g_fd >= 0 && fd_is_ours()) ::close(g_fd);
  g_next_chunk = 0;
  g_allocated_chunks = 0;
  g_stamp = 0;
  g_fd = sys::open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
  if (g_fd < 0) return false;
  keep_fd_high();
  struct stat st;
  if (fstat(g_fd, &st) != 0) return false;
  g_device = st.st_dev;
  g_inode = st.st_ino;
  const int error = exceeds_file_limit(kHeaderBytes) ? EFBIG : posix_fallocate(g_fd, 0, kHeaderBytes);
  if (error != 0) {
    errno = error;
    return false;
  }
  Header* fresh = static_cast<Header*>(sys::map(kHeaderBytes, MAP_SHARED, g_fd, 0));
  if (fresh == nullptr) return false;

  fresh->version = format::kVersion;
  fresh->header_bytes = kHeaderBytes;
  fresh->chunk_bytes = kChunkBytes;
  fresh->event_bytes = sizeof(format::Event);
  fresh->byte_order = 0x01020304;
  fresh->pointer_bytes = sizeof(void*);
  fresh->page_bytes = static_cast<uint32_t>(sysconf(_SC_PAGESIZE));
  fresh->pid = static_cast<uint32_t>(getpid());
  utsname name;
  if (uname(&name) == 0) memcpy(fresh->arch, name.machine, strnlen(name.machine, sizeof fresh->arch - 1));
  fresh->start_realtime_ns = sys::now_ns(CLOCK_REALTIME);
  fresh->start_monotonic_ns = sys::now_ns();
  fresh->status = flags;
  __atomic_thread_fence(__ATOMIC_RELEASE);
  memcpy(fresh->magic, format::kMagic, sizeof format::kMagic);
  g_header = fresh;
  return true;
}

ChunkHeader* next_chunk(format::ChunkKind kind, uint32_t thread) {
  Guard guard(grow_lock);
  if (!has_room()) return nullptr;
  /* Pages that are not in the cache would be read, and megabytes of zeros read ahead. */
  static const char zeros[kChunkBytes] = {};
  const off_t offset = chunk_offset(g_next_chunk);
  if (!sys::write_at(g_fd, zeros, 0, zeros, kChunkBytes, offset)) {
    stop(format::kDiskFull);
    return nullptr;
  }
  void* at = sys::map(kChunkBytes, MAP_SHARED, g_fd, offset);
  if (at == nullptr) {
    stop(0);
    return nullptr;
  }
  /* For writing, in one call: MAP_POPULATE only reads, and each page's first store would fault. */
  sys::populate(at, kChunkBytes);
  ChunkHeader* chunk = static_cast<ChunkHeader*>(at);
  chunk->kind = kind;
  chunk->thread = thread;
  chunk->sequence = g_next_chunk++;
  chunk->time_ns = sys::now_ns();
  chunk->stamp = __atomic_load_n(&g_stamp, __ATOMIC_RELAXED);
  __atomic_store_n(&chunk->magic, format::kChunkMagic, __ATOMIC_RELEASE);
  note_progress();
  return chunk;
}

bool empty_chunk(ChunkHeader* chunk) {
  ChunkHeader copy = *chunk;
  int fd;
  {
    Guard guard(grow_lock);
    if (!has_room()) return false;
    copy.sequence = g_next_chunk++;
    fd = g_fd;
    note_progress();
  }
  __atomic_store_n(&chunk->copying, uint64_t{copy.sequence} + 1, __ATOMIC_RELEASE);
  char* payload = reinterpret_cast<char*>(chunk + 1);
  constexpr size_t kBytes = kChunkBytes - sizeof(ChunkHeader);
  /* A write into pages that are not mapped: to map, fault in and unmap them costs three times as much. */
  if (!sys::write_at(fd, &copy, sizeof copy, payload, kBytes, chunk_offset(copy.sequence))) {
    stop(format::kDiskFull);
    return false;
  }
  if (chunk->kind == format::kMeta) {
    /* Entries are read up to one of type 0: with the first, all are gone at once. */
    __atomic_store_n(&reinterpret_cast<format::MetaHeader*>(payload)->type, 0, __ATOMIC_RELEASE);
  } else {
    /* Stamps alone: a record that is half zero when the process is killed would be a wrong one. */
    for (char* at = payload; at < payload + kBytes; at += sizeof(format::Event)) {
      __atomic_store_n(&reinterpret_cast<format::Event*>(at)->stamp, 0, __ATOMIC_RELAXED);
    }
  }
  chunk->time_ns = sys::now_ns();
  chunk->stamp = __atomic_load_n(&g_stamp, __ATOMIC_RELAXED);
  __atomic_store_n(&chunk->copying, 0, __ATOMIC_RELEASE);
  return true;
}

void close() {
  Guard guard(grow_lock);
  note_progress();
  __atomic_or_fetch(&g_header->status, format::kClosed, __ATOMIC_RELAXED);
  if (fd_is_ours() && ftruncate(g_fd, chunk_offset(g_next_chunk)) == 0) g_allocated_chunks = g_next_chunk;
}

}  // namespace etmem::trace_file
