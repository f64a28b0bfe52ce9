#include "observe.h"

#include <dlfcn.h>
#include <link.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "arena.h"
#include "elf_notes.h"
#include "recorder.h"
#include "system.h"

namespace etmem::observe {

Options options;

namespace {

/* linux/fs.h of 6.7 and later; older headers lack it. */
struct PageRegion {
  uint64_t start, end, categories;
};
struct ScanArguments {
  uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
  uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
constexpr unsigned long kPagemapScan = _IOWR('f', 16, ScanArguments);
constexpr uint64_t kIsPresent = 1 << 3;
constexpr uint64_t kIsZeroPage = 1 << 5;
#if defined(__aarch64__)
constexpr uint64_t kUserEnd = 0xfffffffff000;  // with 48-bit addresses; with fewer the scan fails and pagemap serves
#else
constexpr uint64_t kUserEnd = 0x7ffffffff000;
#endif

constexpr size_t kBuffer = 48 * 1024;  // one meta entry's worth

SpinLock lock;  // of the buffer, and of one snapshot at a time
char* buffer;
uint32_t snapshots;

uint64_t field_kb(const char* text, const char* name) {
  const char* at = strstr(text, name);
  return at == nullptr ? 0 : strtoull(at + strlen(name), nullptr, 10) * 1024;
}

bool reset_high_water() {
  const int fd = sys::open("/proc/self/clear_refs", O_WRONLY);
  if (fd < 0) return false;
  const bool reset = ::write(fd, "5", 1) == 1;
  ::close(fd);
  return reset;
}

/* Said once: VmHWM is then the process's, not the phase's. */
void note_no_high_water(const char* why) {
  static bool said = false;
  if (said) return;
  said = true;
  const format::MetaNote note = {recorder::string("issue.high_water_unavailable"), recorder::string(why)};
  recorder::meta(format::kMetaNote, note);
}

uint64_t rss_bytes() {
  char text[128];
  const ssize_t n = sys::read_file("/proc/self/statm", text, sizeof text - 1);
  if (n <= 0) return 0;
  text[n] = 0;
  char* rest = nullptr;
  strtoull(text, &rest, 10);
  return strtoull(rest, nullptr, 10) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

/* The file is read piece by piece; a piece ends at a line's end. */
void write_maps(uint32_t id) {
  const int fd = sys::open("/proc/self/maps", O_RDONLY);
  if (fd < 0) return;
  uint32_t part = 0;
  size_t held = 0;
  for (;;) {
    const ssize_t n = ::read(fd, buffer + held, kBuffer - held);
    if (n > 0) held += static_cast<size_t>(n);
    if (held == 0) break;
    if (n > 0 && kBuffer - held >= 4096) continue;
    const format::MetaSnapshotMaps entry = {id, part++, static_cast<uint32_t>(held), 0};
    if (!recorder::meta(format::kMetaSnapshotMaps, entry, buffer, held) || n <= 0) break;
    held = 0;
  }
  ::close(fd);
}

void write_ranges(uint32_t id, uint32_t part, const PageRegion* ranges, size_t count) {
  const format::MetaSnapshotPages entry = {id, part, static_cast<uint32_t>(count), 0};
  recorder::meta(format::kMetaSnapshotPages, entry, ranges, count * sizeof *ranges);
}

/* PAGEMAP_SCAN, Linux 6.7: present pages that are not the shared zero page. */
bool scan_pages(int fd, uint32_t id) {
  PageRegion* ranges = reinterpret_cast<PageRegion*>(buffer);
  constexpr size_t kRanges = kBuffer / sizeof(PageRegion);
  uint64_t from = 0;
  for (uint32_t part = 0; from < kUserEnd; ++part) {
    ScanArguments scan = {};
    scan.size = sizeof scan;
    scan.start = from;
    scan.end = kUserEnd;
    scan.vec = reinterpret_cast<uint64_t>(ranges);
    scan.vec_len = kRanges;
    scan.category_inverted = kIsZeroPage;
    scan.category_mask = kIsPresent | kIsZeroPage;
    /* Which pages are a file's would cost the kernel a look at each page's struct, three times the whole scan. */
    scan.return_mask = kIsPresent;
    const int count = ioctl(fd, kPagemapScan, &scan);
    if (count < 0) return false;
    if (count > 0) write_ranges(id, part, ranges, static_cast<size_t>(count));
    if (scan.walk_end <= from) break;
    from = scan.walk_end;
  }
  return true;
}

class RangeWriter {
 public:
  explicit RangeWriter(uint32_t id) : id_(id) {}
  ~RangeWriter() { flush(); }
  void add(uint64_t start, uint64_t end, uint64_t categories) {
    if (count_ > 0 && ranges_[count_ - 1].end == start && ranges_[count_ - 1].categories == categories) {
      ranges_[count_ - 1].end = end;
      return;
    }
    if (count_ == kRanges) flush();
    ranges_[count_++] = {start, end, categories};
  }

 private:
  void flush() {
    if (count_ > 0) write_ranges(id_, part_++, ranges_, count_);
    count_ = 0;
  }
  static constexpr size_t kRanges = kBuffer / 2 / sizeof(PageRegion);
  PageRegion* ranges_ = reinterpret_cast<PageRegion*>(buffer);
  size_t count_ = 0;
  uint32_t id_;
  uint32_t part_ = 0;
};

/* /proc/self/pagemap: an anonymous page counts only with bit 56, or every read of untouched memory would. */
bool read_pagemap(int fd, uint32_t id, uint64_t page) {
  const int maps = sys::open("/proc/self/maps", O_RDONLY);
  if (maps < 0) return false;
  RangeWriter writer(id);
  uint64_t* entries = reinterpret_cast<uint64_t*>(buffer + kBuffer / 2);
  constexpr size_t kEntries = kBuffer / 2 / sizeof(uint64_t) / 2;
  char* text = buffer + kBuffer / 2 + kEntries * sizeof(uint64_t);
  const size_t text_size = kBuffer / 4 - 1;
  size_t held = 0;
  for (;;) {
    const ssize_t n = ::read(maps, text + held, text_size - held);
    if (n > 0) held += static_cast<size_t>(n);
    text[held] = 0;
    char* line = text;
    for (char* newline; (newline = strchr(line, '\n')) != nullptr; line = newline + 1) {
      char* rest = nullptr;
      const uint64_t start = strtoull(line, &rest, 16);
      const uint64_t end = strtoull(rest + 1, nullptr, 16);
      for (uint64_t at = start; at < end && end <= kUserEnd;) {
        size_t want = (end - at) / page;
        if (want > kEntries) want = kEntries;
        const off_t offset = static_cast<off_t>(at / page * sizeof(uint64_t));
        const ssize_t got = ::pread(fd, entries, want * sizeof(uint64_t), offset);
        if (got <= 0) break;
        for (size_t i = 0; i < static_cast<size_t>(got) / sizeof(uint64_t); ++i, at += page) {
          const bool present = entries[i] >> 63 & 1, file = entries[i] >> 61 & 1, exclusive = entries[i] >> 56 & 1;
          if (present && (file || exclusive)) writer.add(at, at + page, kIsPresent);
        }
      }
    }
    held = strlen(line);
    memmove(text, line, held);
    if (n <= 0) break;
  }
  ::close(maps);
  return true;
}

uint32_t write_pages(uint32_t id) {
  const int fd = sys::open("/proc/self/pagemap", O_RDONLY);
  if (fd < 0) return 0;
  uint32_t how = 0;
  if (scan_pages(fd, id)) {
    how = format::kSnapshotScan;
  } else if (read_pagemap(fd, id, static_cast<uint64_t>(sysconf(_SC_PAGESIZE)))) {
    how = format::kSnapshotPagemap;
  }
  ::close(fd);
  return how;
}

using Mallinfo2 = struct mallinfo2 (*)();

Mallinfo2 figures_of_malloc;

struct mallinfo2 malloc_figures() { return figures_of_malloc == nullptr ? (struct mallinfo2){} : figures_of_malloc(); }

constexpr uint32_t kModules = 4096;
uint64_t* known_modules;  // load addresses, in an open-addressing set
unsigned long long adds_seen;

bool remember_module(uint64_t base) {
  uint32_t at = static_cast<uint32_t>(base >> 12) % kModules;
  for (uint32_t n = 0; n < kModules; ++n, at = (at + 1) % kModules) {
    if (known_modules[at] == base) return false;
    if (known_modules[at] == 0) {
      known_modules[at] = base;
      return true;
    }
  }
  return false;
}

int visit_module(dl_phdr_info* info, size_t, void* scope) {
  if (info->dlpi_adds == adds_seen) return 1;
  uint64_t low = ~uint64_t{0}, high = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr) & segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    if (segment.p_vaddr < low) low = segment.p_vaddr;
    if (segment.p_vaddr + segment.p_memsz > high) high = segment.p_vaddr + segment.p_memsz;
  }
  if (high == 0 || !remember_module(info->dlpi_addr + low)) return 0;
  const char* path = info->dlpi_name;
  char self[4096];
  if (path == nullptr || *path == 0) {
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n < 0 ? 0 : n] = 0;
    path = self;
  }
  char id[64];
  const size_t length = elf::build_id(*info, id, sizeof id);
  const format::MetaModule module = {info->dlpi_addr + low,        high - low,
                                     recorder::string(path),       *static_cast<uint32_t*>(scope),
                                     recorder::string(id, length), 0};
  recorder::meta(format::kMetaModule, module);
  return 0;
}

}  // namespace

void rss(format::RssLabel label, uint32_t scope) {
  if (!recording() || options.emulated) return;
  Busy busy;
  char text[4096];
  const ssize_t n = sys::read_file("/proc/self/status", text, sizeof text - 1);
  text[n < 0 ? 0 : n] = 0;
  const format::MetaRss sample = {label,
                                  scope,
                                  sys::now_ns(),
                                  field_kb(text, "VmRSS:"),
                                  field_kb(text, "VmHWM:"),
                                  field_kb(text, "VmLck:"),
                                  field_kb(text, "RssFile:")};
  recorder::meta(format::kMetaRss, sample);
  if (options.keep_rusage) {
    note_no_high_water("the kernel's high water was not reset, as --keep-rusage asks");
  } else if (!reset_high_water()) {
    note_no_high_water("the kernel's high water cannot be reset: /proc/self/clear_refs is not writable");
  }
}

void snapshot(uint32_t name, uint32_t scope) {
  if (!recording() || options.dry || options.emulated) return;
  Busy busy;
  Guard guard(lock);
  if (buffer == nullptr) buffer = static_cast<char*>(arena::allocate(kBuffer));
  if (buffer == nullptr) return;
  memset(buffer, 0, kBuffer);  // touched now, not between the reading of RSS and of the pages
  arena::visit_new([](uint64_t address, uint64_t bytes) {
    recorder::meta(format::kMetaOwn, format::MetaOwn{address, bytes, recorder::string("arena"), 0});
  });
  const uint32_t id = ++snapshots;
  const struct mallinfo2 heap = malloc_figures();
  format::MetaSnapshot entry = {id,          name,          scope,        0, sys::now_ns(), rss_bytes(), heap.arena,
                                heap.hblkhd, heap.uordblks, heap.fordblks};
  const uint64_t stamp = trace_file::next_stamp();
  entry.flags = write_pages(id);
  write_maps(id);
  recorder::meta(format::kMetaSnapshot, entry, nullptr, 0, stamp);
}

void begin_trace() {
  // Before anything is recorded: dlsym frees the message of a dlopen of the program's that failed, inside the agent.
  figures_of_malloc = reinterpret_cast<Mallinfo2>(dlsym(RTLD_DEFAULT, "mallinfo2"));
  if (known_modules != nullptr) memset(known_modules, 0, sizeof *known_modules * kModules);
  adds_seen = 0;
  snapshots = 0;
  arena::visit_again();
}

void modules(uint32_t scope) {
  if (!recording()) return;
  Busy busy;
  if (known_modules == nullptr) known_modules = arena::allocate_array<uint64_t>(kModules);
  if (known_modules == nullptr) return;
  dl_iterate_phdr(visit_module, &scope);
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void*) {
        adds_seen = info->dlpi_adds;
        return 1;
      },
      nullptr);
}

}  // namespace etmem::observe
