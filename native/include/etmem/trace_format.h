/* The trace file, version 2. docs/reference/trace-format.md is the prose of this header.
 *
 *   page 0          Header
 *   page 1...       chunks of Header.chunk_bytes, each a ChunkHeader and its payload
 *
 * Chunks of kind kEvents belong to one thread and hold Event records; a record is valid when its stamp
 * is not zero (the stamp is stored last). A thread writes into one chunk all the time and moves its events to another
 * one when it is full. Chunks of kind kMeta hold MetaHeader + payload entries of
 * varying length; the first entry of type 0 ends the chunk. Everything is little-endian. A file whose
 * writer was killed needs no repair: what was recorded is in the page cache.
 */
#pragma once

#include <cstdint>

namespace etmem::format {

constexpr char kMagic[8] = {'E', 'T', 'M', 'E', 'M', 'T', 'R', '\1'};
constexpr uint32_t kVersion = 2;  // 2: heaps of devices, counters, labels, misuse
constexpr uint32_t kHeaderBytes = 4096;
constexpr uint32_t kChunkBytes = 64 * 1024;
constexpr uint32_t kChunkMagic = 0x48435445;  // "ETCH"

enum Status : uint32_t {
  kClosed = 1,       // the process said goodbye; without it, it was killed or called _exit
  kStopped = 2,      // recording ended before the process did
  kDiskFull = 4,     // a chunk could not be allocated; nothing is recorded after `last stamp`
  kForkedChild = 8,  // written by a child process (--children)
};

struct Header {
  char magic[8];  // stored last: a file without it was never started
  uint32_t version;
  uint32_t header_bytes;
  uint32_t chunk_bytes;
  uint32_t event_bytes;
  uint32_t byte_order;  // 0x01020304
  uint32_t pointer_bytes;
  uint32_t page_bytes;
  uint32_t pid;
  char arch[16];  // uname -m
  uint64_t start_realtime_ns;
  uint64_t start_monotonic_ns;  // every *_ns in the file is on this clock
  uint64_t chunks;              // chunks handed out so far
  uint64_t stamps;              // a lower bound of the last stamp given
  uint64_t dropped_events;      // events that could not be recorded
  uint64_t agent_bytes;         // the agent's private memory
  uint32_t status;              // Status bits
  uint32_t reserved;
};
static_assert(sizeof(Header) == 112);

enum ChunkKind : uint32_t { kEvents = 1, kMeta = 2 };

struct ChunkHeader {
  uint32_t magic;
  uint32_t kind;
  uint32_t thread;    // tid of the writer (kEvents), 0 (kMeta)
  uint32_t sequence;  // 0, 1, 2... over the whole file
  uint64_t time_ns;   // when the chunk was handed out
  uint64_t stamp;     // the last stamp given by then: with time_ns, a point of the stamp-to-time line
  uint64_t copying;   // not 0: its content is being moved to the chunk of this sequence minus one, and may be in both
  uint64_t reserved[3];
};
static_assert(sizeof(ChunkHeader) == 64);

enum EventKind : uint8_t {
  kAlloc = 1,       // address, size, scope, stack; flags = AllocFunction
  kFree = 2,        // address; stamped before libc is called
  kUndo = 3,        // address: the thread's last kFree or kUnmap of it did not happen (realloc or mremap failed)
  kMap = 4,         // address, size (mapped bytes); flags = MapFlags
  kUnmap = 5,       // address, size; stamped before the call
  kAdvise = 6,      // address, size; flags = 0 DONTNEED, 1 FREE
  kProtect = 7,     // address, size; flags = 1 when the new protection is PROT_NONE
  kBreak = 8,       // address = the program break after brk/sbrk, size = bytes added (two's complement in 48 bits)
  kHeapAlloc = 16,  // a registered heap: address, size; stack = heap id
  kHeapFree = 17,   // address; stack = heap id
  kHeapReset = 18,  // everything of the heap; stack = heap id
};

enum AllocFunction : uint8_t {
  kMalloc = 0,
  kCalloc,
  kRealloc,
  kReallocarray,
  kPosixMemalign,
  kAlignedAlloc,
  kMemalign,
  kValloc,
  kPvalloc
};

enum MapFlags : uint8_t {
  kMapFile = 1,      // a MetaFileMap with the same stamp says which
  kMapReserved = 2,  // PROT_NONE
  kMapShared = 4,
  kMapFixed = 8,    // replaces what was there
  kMapNested = 16,  // made inside malloc by another allocator: not a block of its own
  kMapMoved = 32,   // by mremap
};

struct Event {
  uint64_t stamp;  // one order over all threads, 1, 2, 3...; gaps are possible
  uint64_t address;
  uint64_t size : 48;
  uint64_t kind : 8;
  uint64_t flags : 8;
  uint32_t scope;  // innermost scope of the thread, 0 for none
  uint32_t stack;  // MetaStack id, 0 for none; heap id for kHeap*
};
static_assert(sizeof(Event) == 32);

enum MetaType : uint32_t {
  kMetaEnd = 0,
  kMetaString = 1,
  kMetaScopeBegin = 2,
  kMetaScopeEnd = 3,
  kMetaThread = 4,
  kMetaThreadEnd = 5,
  kMetaClaim = 6,
  kMetaHeap = 7,
  kMetaStack = 8,
  kMetaFileMap = 9,
  kMetaRss = 10,
  kMetaSnapshot = 11,
  kMetaSnapshotMaps = 12,
  kMetaSnapshotPages = 13,
  kMetaSegment = 14,
  kMetaSegmentFree = 15,
  kMetaNote = 16,
  kMetaOwn = 17,
  kMetaModule = 18,
  kMetaPythonStack = 19,
  kMetaCounter = 20,
  kMetaLabel = 21,
  kMetaMisuse = 22,
};

struct MetaHeader {
  uint32_t type;   // stored last
  uint32_t bytes;  // of the whole entry, header included, a multiple of 8
  uint64_t stamp;
};
static_assert(sizeof(MetaHeader) == 16);

/* Strings are named by id; id 0 is the empty string. */
struct MetaString {
  uint32_t id;
  uint32_t length; /* length bytes follow */
};

enum ScopeKind : uint32_t {
  kScopeProgramLoad = 1,  // name = path when known, a = program id
  kScopeMethodLoad = 2,   // name = method, a = program id
  kScopeInference = 3,    // name = method, a = program id, b = iteration (0 = first)
  kScopeUnload = 4,       // name = method, a = program id
  kScopeDelegate = 5,     // name = backend id, a = instance, b = DelegateStage
  kScopeInstruction = 6,  // name = operator or DELEGATE_CALL, a = chain, b = instruction
  kScopeTag = 7,          // name = tag, a = string id of the category (0 = none)
  kScopeProfiler = 8,     // etmem's own work
};
enum DelegateStage : int64_t { kStageInit = 0, kStageExecute = 1, kStageDestroy = 2 };

struct MetaScopeBegin {
  uint32_t id, parent, kind, name;
  uint32_t thread, flags;
  int64_t a, b;
  uint64_t time_ns;
};
struct MetaScopeEnd {
  uint32_t id;
  uint32_t failed;
  uint64_t time_ns;
};

/* flags: 1 = it existed before recording began */
struct MetaThread {
  uint32_t tid, parent, scope, flags;  // scope: the creator's when it called pthread_create
  uint64_t start_routine, stack_pointer, time_ns;
};
struct MetaThreadEnd {
  uint32_t tid, reserved;
};

/* [address, address+bytes) belongs to owner/category (string ids; category may be 0) */
struct MetaClaim {
  uint64_t address, bytes;
  uint32_t owner, category, name, scope;
};

enum MemoryKind : uint32_t { kHostMemory = 0, kGpuMemory = 1, kNpuMemory = 2, kDmaBuf = 3, kOtherDevice = 4 };
/* A registered heap. For ExecuTorch's allocators: name "method_allocator" or "temp_allocator",
 * owner "executorch", category = name. Addresses of a heap whose memory is not the host's are its own. */
struct MetaHeap {
  uint32_t id, name, owner, category;
  uint32_t scope, memory_kind;
};

struct MetaStack {
  uint32_t id, depth; /* depth uint64_t return addresses follow, innermost first */
};

struct MetaFileMap {
  uint64_t address, bytes, offset;
  uint32_t path, thread;
};

enum RssLabel : uint32_t { kRssStart = 1, kRssPhaseBegin = 2, kRssPhaseEnd = 3, kRssExit = 4 };
/* high_water: VmHWM since the last reset (each sample resets it when clear_refs can be written) */
struct MetaRss {
  uint32_t label, scope;
  uint64_t time_ns, rss_bytes, high_water_bytes, locked_bytes, file_rss_bytes;
};

enum SnapshotFlags : uint32_t { kSnapshotScan = 1, kSnapshotPagemap = 2 };  // how pages were read; 0: not
/* name = why: "method_load", "inference", "unload", "exit"; scope = the phase it ends */
struct MetaSnapshot {
  uint32_t id, name, scope, flags;
  uint64_t time_ns, rss_bytes;
  uint64_t malloc_arena_bytes, malloc_mmap_bytes, malloc_used_bytes, malloc_free_bytes;  // mallinfo2
};
struct MetaSnapshotMaps {
  uint32_t snapshot, part;
  uint32_t length, reserved; /* text of /proc/self/maps follows */
};
struct MetaSnapshotPages {
  uint32_t snapshot, part;
  uint32_t count, reserved; /* count PageRange follow */
};
struct PageRange {
  uint64_t start, end;
  uint64_t categories;
};  // PAGEMAP_SCAN's; bit 2 = file, bit 3 = present

enum SegmentType : uint32_t {  // DataLoader::SegmentInfo::Type, then ours
  kSegmentProgram = 0,
  kSegmentConstant = 1,
  kSegmentBackend = 2,
  kSegmentMutable = 3,
  kSegmentExternal = 4,
  kSegmentNamed = 16,  // NamedDataMap::get_data by a delegate; name = key
};
/* A piece of the program or of a .ptd that ExecuTorch holds in memory until MetaSegmentFree. */
struct MetaSegment {
  uint64_t address, bytes, offset;
  uint32_t id, segment_type, index, name, scope, program;
};
struct MetaSegmentFree {
  uint32_t id, scope;
};

struct MetaNote {
  uint32_t key, value;
};  // string ids; docs/reference/trace-format.md lists the keys

struct MetaOwn {
  uint64_t address, bytes;
  uint32_t name, reserved;
};  // a mapping of the profiler itself

/* A module that appeared; scope = the delegate's init it appeared in, 0 for elsewhere */
struct MetaModule {
  uint64_t base, bytes;
  uint32_t path, scope;
  uint32_t build_id, reserved;
};

/* The Python frames that led to a phase, innermost first. C++ calls no Python inside a phase, so they hold for all that
 * is allocated in it on that thread. */
struct PythonFrame {
  uint32_t function, file, line, reserved;
};
struct MetaPythonStack {
  uint32_t scope, depth; /* depth PythonFrame follow */
};

enum CounterUnit : uint32_t { kUnitNumber = 0, kUnitBytes = 1 };
/* A value of a named time series, which holds until the next one. */
struct MetaCounter {
  uint32_t name, unit, scope, reserved;
  int64_t value;
  uint64_t time_ns;
};

/* What a region of the block that is live at its stamp is called. */
struct MetaLabel {
  uint64_t address, bytes;
  uint32_t name, scope;
};

enum MisuseKind : uint32_t {
  kMisuseScopeEnd = 1,   // a scope was ended twice, or on another thread; scope = its id
  kMisuseScopeOpen = 2,  // an enclosing scope was ended first; scope = the inner one's id
  kMisuseHeapTwice = 3,  // a second heap of one name and owner; name = its name
  kMisuseRange = 4,      // memory beyond the address space, or of 2^48 bytes and more; name = what of
  kMisuseScopeKind = 5,  // a scope of a kind that there is not; name = its name
};
/* A call that a client should not have made, and that was not followed. At most kMisuses of them. */
struct MetaMisuse {
  uint32_t kind, name, scope, thread;
};
constexpr uint32_t kMisuses = 256;

}  // namespace etmem::format
