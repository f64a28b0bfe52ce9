/* A recorder for where the agent cannot be: no file system, no threads, no libc, no malloc hook. It needs a buffer of
 * the caller's, 16 KiB are enough, and writes the same records as the agent; `etmem report` reads what comes out.
 *
 * Include it in one source file (with ETMEM_MAX_NAMES and ETMEM_MAX_PROGRAMS set low, if etmem/wrap.hpp is there too)
 * and hand its table to the client headers of each module:
 *
 * @code
 *   alignas(16) static unsigned char memory[16 * 1024];
 *   static etmem::Recorder recorder;
 *
 *   etmem::RecorderOptions options;
 *   options.flush = [](void*, uint64_t offset, const void* data, size_t bytes) { return uart_send(offset, data, bytes);
 * }; if (recorder.start(memory, sizeof memory, options)) etmem_set_api(recorder.api()); run_the_model();
 *   recorder.stop();   // without flush: recorder.data(), recorder.bytes() are the trace
 * @endcode
 *
 * One call at a time is followed: one that meets another (an interrupt, a second thread) is dropped and counted. All
 * that is reported belongs to one thread. With etmem/wrap_malloc.hpp malloc's blocks are seen as the agent sees them;
 * elsewhere the blocks are what ExecuTorch's allocators, loaders and claims report.
 */
#ifndef ETMEM_RECORDER_HPP_
#define ETMEM_RECORDER_HPP_

#include <stddef.h>
#include <stdint.h>

#include <cstring>

#include "etmem/etmem.h"
#include "etmem/trace_format.h"

#ifndef ETMEM_RECORDER_CHUNK
#define ETMEM_RECORDER_CHUNK 1024  // bytes of one chunk; a multiple of 32
#endif
#ifndef ETMEM_RECORDER_STRINGS
#define ETMEM_RECORDER_STRINGS 128  // remembered; others are written again each time
#endif

namespace etmem {

struct RecorderOptions {
  /* Takes a finished piece of the trace, which belongs at `offset` of it. Pieces come in order, but for the header,
   * which comes first and once more at the end, at offset 0. False: nothing more is recorded. Null: the buffer is the
   * trace. */
  bool (*flush)(void* context, uint64_t offset, const void* data, size_t bytes) = nullptr;
  void* context = nullptr;
  uint64_t (*now_ns)() = nullptr;  // any clock that does not go back; null: no times, only an order
  uint32_t page_bytes = 4096;
  bool follows_malloc = false;  // made() and ends() are called for every block: etmem/wrap_malloc.hpp does
  const char* arch = "";        // at most 15 characters
  size_t own_bytes = 4096;      // of the buffer, for what the decorators keep
};

class Recorder {
 public:
  /* False when the buffer is too small or not 16-byte aligned, or when one has recorded already: clients keep their ids
   * for the process's life, and there is no telling them. The buffer must live until stop(). */
  bool start(void* buffer, size_t bytes, const RecorderOptions& options = RecorderOptions());
  /* Writes what is left and ends the trace. */
  void stop();

  const etmem_api* api() const { return &table(); }
  const void* data() const { return header_; }
  /* Of the trace in the buffer, where there is no flush. */
  size_t bytes() const { return sizeof(format::Header) + kHeaderGap + static_cast<size_t>(chunks_) * kChunk; }
  uint64_t dropped() const { return header_ == nullptr ? 0 : header_->dropped_events; }

  /* Blocks of a malloc that can tell; ends() before the block can be handed out again. Whatever recorder runs takes it.
   */
  static void* made(void* block, size_t bytes) {
    block_event(format::kAlloc, block, bytes);
    return block;
  }
  static void ends(const void* block) { block_event(format::kFree, block, 0); }
  static void did_not_end(const void* block) { block_event(format::kUndo, block, 0); }

 private:
  static constexpr size_t kChunk = ETMEM_RECORDER_CHUNK;
  static constexpr size_t kHeaderGap = 128 - sizeof(format::Header);
  static constexpr uint32_t kThread = 1;
  static constexpr uint32_t kDepth = 32;
  static constexpr uint32_t kHeaps = 16;
  static constexpr size_t kMaxText = kChunk / 2;
  static_assert(kChunk % 32 == 0 && kChunk >= 512 && sizeof(format::Header) <= 128, "see trace_format.h");

  struct Known {
    uint64_t hash;
    uint32_t id;
  };
  struct Opened {
    const void* key;
    uint32_t kind, name, owner, id;
  };

  /* One call at a time, without waiting: whoever waits in an interrupt waits for ever. */
  class Turn {
   public:
    explicit Turn(Recorder* recorder)
        : recorder_(recorder), got_(recorder != nullptr && !__atomic_test_and_set(&recorder->busy_, __ATOMIC_ACQUIRE)) {
      if (recorder != nullptr && !got_ && recorder->running_) {
        __atomic_add_fetch(&recorder->header_->dropped_events, 1, __ATOMIC_RELAXED);
      }
    }
    ~Turn() {
      if (got_) __atomic_clear(&recorder_->busy_, __ATOMIC_RELEASE);
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    explicit operator bool() const { return got_ && recorder_->running_; }
    Recorder* operator->() const { return recorder_; }

   private:
    Recorder* const recorder_;
    const bool got_;
  };

  static void block_event(format::EventKind kind, const void* block, size_t bytes) {
    if (block == nullptr) return;
    if (Turn turn(current()); turn) turn->event(kind, block, bytes, 0);
  }

  static Recorder*& current() {
    static Recorder* recorder = nullptr;
    return recorder;
  }
  static const etmem_api& table();

  uint64_t now() const { return options_.now_ns != nullptr ? options_.now_ns() : stamp_ + 1; }
  void drop() { ++header_->dropped_events; }

  unsigned char* fresh_chunk(format::ChunkKind kind);
  void begin_chunk(unsigned char* chunk, format::ChunkKind kind);
  bool flush_chunk(unsigned char* chunk);
  unsigned char* room(unsigned char*& chunk, size_t& used, format::ChunkKind kind, size_t bytes);
  void event(format::EventKind kind, const void* address, uint64_t bytes, uint32_t stack);
  bool meta(format::MetaType type, const void* fixed, size_t fixed_bytes, const void* tail = nullptr,
            size_t tail_bytes = 0);
  template <typename T>
  bool meta(format::MetaType type, const T& fixed) {
    return meta(type, &fixed, sizeof fixed);
  }
  uint32_t string(const char* text, size_t length);
  uint32_t begin(uint32_t kind, etmem_id name, int64_t a, int64_t b, uint32_t flags);
  void end(etmem_id scope, bool failed);
  uint32_t open(const void* key, uint32_t kind, etmem_id name, etmem_id owner, etmem_id category);
  void misuse(format::MisuseKind kind, uint32_t name, uint32_t scope = 0) {
    if (misuses_++ < format::kMisuses) meta(format::kMetaMisuse, format::MetaMisuse{kind, name, scope, kThread});
  }
  bool is_range(const void* address, uint64_t bytes, uint32_t what) {
    const uint64_t start = reinterpret_cast<uintptr_t>(address);
    if (bytes < uint64_t{1} << 48 && start + bytes >= start) return true;
    misuse(format::kMisuseRange, what);
    return false;
  }
  uint32_t scope() const { return depth_ == 0 ? 0 : scopes_[depth_ - 1]; }

  // The functions of the table.
  static int recording() { return current() != nullptr && current()->running_; }
  static etmem_id intern(const char* text, size_t length) {
    if (text == nullptr || length == 0) return 0;
    Turn turn(current());
    return turn ? turn->string(text, length) : 0;
  }
  static etmem_id scope_begin(uint32_t kind, etmem_id name, int64_t a, int64_t b, uint32_t flags) {
    Turn turn(current());
    return turn ? turn->begin(kind, name, a, b, flags) : 0;
  }
  static void scope_end(etmem_id scope, int failed) {
    Turn turn(current());
    if (scope != 0 && turn) turn->end(scope, failed != 0);
  }
  static void claim(const void* address, size_t bytes, etmem_id owner, etmem_id category, etmem_id name) {
    Turn turn(current());
    if (!turn || !turn->is_range(address, bytes, name)) return;
    const uint64_t start = reinterpret_cast<uintptr_t>(address);
    turn->meta(format::kMetaClaim, format::MetaClaim{start, bytes, owner, category, name, turn->scope()});
  }
  static etmem_id heap_register(etmem_id name, etmem_id owner, etmem_id category) {
    return heap_open(nullptr, format::kHostMemory, name, owner, category);
  }
  static etmem_id heap_open(const void* key, uint32_t kind, etmem_id name, etmem_id owner, etmem_id category) {
    Turn turn(current());
    return turn ? turn->open(key, kind, name, owner, category) : 0;
  }
  static void heap_alloc(etmem_id heap, const void* address, size_t bytes) {
    Turn turn(current());
    if (heap == 0 || !turn || !turn->is_range(address, bytes, 0)) return;
    turn->event(format::kHeapAlloc, address, bytes, heap);
  }
  static void heap_free(etmem_id heap, const void* address) {
    Turn turn(current());
    if (heap != 0 && turn) turn->event(format::kHeapFree, address, 0, heap);
  }
  static void heap_reset(etmem_id heap) {
    Turn turn(current());
    if (heap != 0 && turn) turn->event(format::kHeapReset, nullptr, 0, heap);
  }
  static etmem_id segment(const etmem_segment* s) {
    Turn turn(current());
    if (!turn) return 0;
    const uint32_t id = ++turn->segments_;
    const format::MetaSegment record = {reinterpret_cast<uintptr_t>(s->address),
                                        s->bytes,
                                        s->offset,
                                        id,
                                        s->type,
                                        s->index,
                                        s->name,
                                        turn->scope(),
                                        s->program};
    return turn->meta(format::kMetaSegment, record) ? id : 0;
  }
  static void segment_free(etmem_id id) {
    Turn turn(current());
    if (id != 0 && turn) turn->meta(format::kMetaSegmentFree, format::MetaSegmentFree{id, turn->scope()});
  }
  static void note(etmem_id key, etmem_id value) {
    Turn turn(current());
    if (turn) turn->meta(format::kMetaNote, format::MetaNote{key, value});
  }
  static void counter(etmem_id name, uint32_t unit, int64_t value) {
    Turn turn(current());
    if (!turn) return;
    if (unit > format::kUnitBytes) unit = format::kUnitNumber;
    turn->meta(format::kMetaCounter, format::MetaCounter{name, unit, turn->scope(), 0, value, turn->now()});
  }
  static void label(const void* address, size_t bytes, etmem_id name) {
    Turn turn(current());
    if (!turn || !turn->is_range(address, bytes, name)) return;
    const uint64_t start = reinterpret_cast<uintptr_t>(address);
    turn->meta(format::kMetaLabel, format::MetaLabel{start, bytes, name, turn->scope()});
  }
  static void snapshot(etmem_id, etmem_id) {}  // there is no RSS
  static void expect_inferences(uint64_t) {}
  static uint64_t remaining_inferences() { return 0; }
  static void* allocate(size_t bytes);
  static uint32_t next_program() { return current() == nullptr ? 0 : ++current()->programs_; }
  static int take_runtime() { return 1; }

  RecorderOptions options_;
  format::Header* header_ = nullptr;
  Known* strings_ = nullptr;
  unsigned char* next_ = nullptr;  // the rest of the buffer
  unsigned char* end_ = nullptr;
  unsigned char* own_ = nullptr;  // what the decorators keep, from here to end_
  unsigned char* own_end_ = nullptr;
  unsigned char* events_ = nullptr;
  unsigned char* meta_ = nullptr;
  size_t events_used_ = 0, meta_used_ = 0;
  uint64_t stamp_ = 0;
  uint32_t chunks_ = 0, string_ids_ = 0, scope_ids_ = 0, heaps_ = 0, segments_ = 0, programs_ = 0, misuses_ = 0;
  uint32_t scopes_[kDepth] = {};
  Opened opened_[kHeaps] = {};  // by clients; a later heap of one name is not told from the first
  uint32_t depth_ = 0;
  bool running_ = false;
  bool broken_ = false;  // flush failed: what comes after is dropped, and counted
  bool busy_ = false;
};

inline const etmem_api& Recorder::table() {
  static const etmem_api functions = {1,
                                      sizeof(etmem_api),
                                      recording,
                                      intern,
                                      scope_begin,
                                      scope_end,
                                      claim,
                                      heap_register,
                                      heap_alloc,
                                      heap_free,
                                      heap_reset,
                                      segment,
                                      segment_free,
                                      note,
                                      snapshot,
                                      expect_inferences,
                                      remaining_inferences,
                                      allocate,
                                      next_program,
                                      heap_open,
                                      counter,
                                      label,
                                      take_runtime};
  return functions;
}

inline bool Recorder::start(void* buffer, size_t bytes, const RecorderOptions& options) {
  const size_t strings = sizeof(Known) * ETMEM_RECORDER_STRINGS;
  const size_t fixed = 128 + strings + options.own_bytes;
  static bool used = false;
  if (used || buffer == nullptr || reinterpret_cast<uintptr_t>(buffer) % 16 != 0) return false;
  if (bytes < fixed + 2 * kChunk) return false;
  used = true;
  *this = Recorder();
  options_ = options;
  std::memset(buffer, 0, bytes);
  unsigned char* start = static_cast<unsigned char*>(buffer);
  end_ = start + bytes;
  own_ = end_ - options.own_bytes;
  own_end_ = end_;
  strings_ = reinterpret_cast<Known*>(own_ - strings);
  end_ = reinterpret_cast<unsigned char*>(strings_);
  next_ = start + 128;
  header_ = reinterpret_cast<format::Header*>(start);
  *header_ = {};
  std::memcpy(header_->magic, format::kMagic, sizeof format::kMagic);
  header_->version = format::kVersion;
  header_->header_bytes = 128;
  header_->chunk_bytes = kChunk;
  header_->event_bytes = sizeof(format::Event);
  header_->byte_order = 0x01020304;
  header_->pointer_bytes = sizeof(void*);
  header_->page_bytes = options.page_bytes;
  header_->pid = kThread;
  std::strncpy(header_->arch, options.arch, sizeof header_->arch - 1);
  header_->start_monotonic_ns = options.now_ns != nullptr ? options.now_ns() : 0;
  current() = this;
  running_ = options_.flush == nullptr || options_.flush(options_.context, 0, header_, 128);
  if (!running_) {
    current() = nullptr;
    return false;
  }
  meta(format::kMetaThread, format::MetaThread{kThread, 0, 0, 1, 0, 0, now()});
  if (!options.follows_malloc) meta(format::kMetaNote, format::MetaNote{string("blocks", 6), string("reported", 8)});
  return true;
}

inline void Recorder::stop() {
  if (current() != this) return;
  while (__atomic_test_and_set(&busy_, __ATOMIC_ACQUIRE)) {}  // ends with the call that interrupted nothing
  header_->status = format::kClosed | (broken_ ? static_cast<uint32_t>(format::kStopped) : 0u);
  if (options_.flush != nullptr && !broken_) {
    if (events_ != nullptr) flush_chunk(events_);
    if (meta_ != nullptr) flush_chunk(meta_);
  }
  running_ = false;
  header_->chunks = chunks_;
  header_->stamps = stamp_;
  if (options_.flush != nullptr) options_.flush(options_.context, 0, header_, 128);
  current() = nullptr;
  __atomic_clear(&busy_, __ATOMIC_RELEASE);
}

/* With flush a chunk has its place in the trace when it is finished, without when it is begun. */
inline unsigned char* Recorder::fresh_chunk(format::ChunkKind kind) {
  if (end_ - next_ < static_cast<ptrdiff_t>(kChunk)) return nullptr;
  unsigned char* chunk = next_;
  next_ += kChunk;
  begin_chunk(chunk, kind);
  if (options_.flush == nullptr) ++chunks_;
  return chunk;
}

inline void Recorder::begin_chunk(unsigned char* chunk, format::ChunkKind kind) {
  std::memset(chunk, 0, kChunk);
  format::ChunkHeader* header = reinterpret_cast<format::ChunkHeader*>(chunk);
  header->magic = format::kChunkMagic;
  header->kind = kind;
  header->thread = kind == format::kEvents ? kThread : 0u;
  header->sequence = chunks_;
  header->time_ns = now();
  header->stamp = stamp_;
}

inline bool Recorder::flush_chunk(unsigned char* chunk) {
  reinterpret_cast<format::ChunkHeader*>(chunk)->sequence = chunks_;
  const uint64_t offset = 128 + uint64_t{chunks_} * kChunk;
  ++chunks_;
  header_->chunks = chunks_;
  header_->stamps = stamp_;
  return options_.flush(options_.context, offset, chunk, kChunk);
}

inline unsigned char* Recorder::room(unsigned char*& chunk, size_t& used, format::ChunkKind kind, size_t bytes) {
  if (chunk != nullptr && kChunk - used >= bytes) return chunk + used;
  if (bytes > kChunk - sizeof(format::ChunkHeader)) return nullptr;
  if (chunk != nullptr && options_.flush != nullptr) {
    if (broken_) return nullptr;
    if (!flush_chunk(chunk)) {
      broken_ = true;
      return nullptr;
    }
    begin_chunk(chunk, kind);
  } else {
    unsigned char* fresh = fresh_chunk(kind);
    if (fresh == nullptr) return nullptr;
    chunk = fresh;
  }
  used = sizeof(format::ChunkHeader);
  return chunk + used;
}

inline void Recorder::event(format::EventKind kind, const void* address, uint64_t bytes, uint32_t stack) {
  unsigned char* at = room(events_, events_used_, format::kEvents, sizeof(format::Event));
  ++stamp_;
  if (at == nullptr) return drop();
  events_used_ += sizeof(format::Event);
  format::Event* event = reinterpret_cast<format::Event*>(at);
  event->address = reinterpret_cast<uintptr_t>(address);
  event->size = bytes;
  event->kind = kind;
  event->flags = 0;
  event->scope = scope();
  event->stack = stack;
  event->stamp = stamp_;
}

inline bool Recorder::meta(format::MetaType type, const void* fixed, size_t fixed_bytes, const void* tail,
                           size_t tail_bytes) {
  const size_t bytes = (sizeof(format::MetaHeader) + fixed_bytes + tail_bytes + 7) & ~size_t{7};
  unsigned char* at = room(meta_, meta_used_, format::kMeta, bytes);
  ++stamp_;
  if (at == nullptr) {
    drop();
    return false;
  }
  meta_used_ += bytes;
  const format::MetaHeader header = {type, static_cast<uint32_t>(bytes), stamp_};
  std::memcpy(at, &header, sizeof header);
  std::memcpy(at + sizeof header, fixed, fixed_bytes);
  if (tail_bytes != 0) std::memcpy(at + sizeof header + fixed_bytes, tail, tail_bytes);
  return true;
}

inline uint32_t Recorder::string(const char* text, size_t length) {
  if (length > kMaxText) length = kMaxText;
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t i = 0; i < length; ++i) hash = (hash ^ static_cast<unsigned char>(text[i])) * 0x100000001b3u;
  if (hash == 0) hash = 1;
  uint32_t at = static_cast<uint32_t>(hash % ETMEM_RECORDER_STRINGS);
  uint32_t tried = 0;
  for (; tried < ETMEM_RECORDER_STRINGS && strings_[at].hash != 0; ++tried) {
    if (strings_[at].hash == hash) return strings_[at].id;
    at = (at + 1) % ETMEM_RECORDER_STRINGS;
  }
  const format::MetaString record = {string_ids_ + 1, static_cast<uint32_t>(length)};
  if (!meta(format::kMetaString, &record, sizeof record, text, length)) return 0;
  ++string_ids_;
  if (tried < ETMEM_RECORDER_STRINGS) strings_[at] = {hash, string_ids_};
  return string_ids_;
}

inline uint32_t Recorder::begin(uint32_t kind, etmem_id name, int64_t a, int64_t b, uint32_t flags) {
  if (kind < format::kScopeProgramLoad || kind > format::kScopeProfiler) {
    misuse(format::kMisuseScopeKind, name);
    return 0;
  }
  if (depth_ == kDepth) {
    drop();
    return 0;
  }
  const uint32_t id = scope_ids_ + 1;
  const format::MetaScopeBegin record = {id, scope(), kind, name, kThread, flags, a, b, now()};
  if (!meta(format::kMetaScopeBegin, record)) return 0;
  scope_ids_ = id;
  scopes_[depth_++] = id;
  return id;
}

inline void Recorder::end(etmem_id scope, bool failed) {
  uint32_t at = depth_;
  while (at > 0 && scopes_[at - 1] != scope) --at;
  if (at == 0) return misuse(format::kMisuseScopeEnd, 0, scope);
  for (; depth_ >= at; --depth_) {
    const uint32_t id = scopes_[depth_ - 1];
    if (id != scope) misuse(format::kMisuseScopeOpen, 0, id);
    meta(format::kMetaScopeEnd, format::MetaScopeEnd{id, failed ? 1u : 0u, now()});
  }
}

/* As the agent's: a client's second heap of one name and owner is the first one, and misuse. */
inline uint32_t Recorder::open(const void* key, uint32_t kind, etmem_id name, etmem_id owner, etmem_id category) {
  if (kind > format::kOtherDevice) kind = format::kOtherDevice;
  uint32_t free = kHeaps;
  for (uint32_t i = 0; key != nullptr && i < kHeaps; ++i) {
    const Opened& known = opened_[i];
    if (known.id == 0) {
      free = i;
      break;
    }
    if (known.kind != kind || known.name != name || known.owner != owner) continue;
    if (known.key != key) misuse(format::kMisuseHeapTwice, name);
    return known.id;
  }
  const format::MetaHeap record = {heaps_ + 1, name, owner, category, scope(), kind};
  if (!meta(format::kMetaHeap, record)) return 0;
  ++heaps_;
  if (free < kHeaps) opened_[free] = {key, kind, name, owner, heaps_};
  return heaps_;
}

inline void* Recorder::allocate(size_t bytes) {
  Turn turn(current());
  bytes = (bytes + 15) & ~size_t{15};
  if (!turn) return nullptr;
  if (static_cast<size_t>(turn->own_end_ - turn->own_) < bytes) {
    turn->drop();  // what a decorator cannot keep goes unseen
    return nullptr;
  }
  void* result = turn->own_;
  turn->own_ += bytes;
  return result;
}

}  // namespace etmem

#endif  // ETMEM_RECORDER_HPP_
