"""A trace in memory: columns for events, small frozen rows for everything else.

The names are those of ``native/include/etmem/trace_format.h``. Stamps order everything over all threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from enum import IntEnum, IntFlag

import numpy as np
import numpy.typing as npt

NEVER = np.uint64(2**64 - 1)
"""The end stamp of what was still live when the trace ended."""

WINDOW_NOTE = "window.begin_ns"
"""A part of a longer recording: phases that began before this time on the trace's clock are not its own."""

U8 = npt.NDArray[np.uint8]
U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]


def last_of(stamps: U64) -> int:
    """The last of some stamps, those that never come left out; 0 for none."""
    return int(stamps[stamps != NEVER].max(initial=0))


class EventKind(IntEnum):
    ALLOC = 1
    FREE = 2
    UNDO = 3
    MAP = 4
    UNMAP = 5
    ADVISE = 6
    PROTECT = 7
    BREAK = 8
    HEAP_ALLOC = 16
    HEAP_FREE = 17
    HEAP_RESET = 18


class MapFlag(IntFlag):
    FILE = 1
    RESERVED = 2
    SHARED = 4
    FIXED = 8
    NESTED = 16
    MOVED = 32


class ScopeKind(IntEnum):
    PROGRAM_LOAD = 1
    METHOD_LOAD = 2
    INFERENCE = 3
    UNLOAD = 4
    DELEGATE = 5
    INSTRUCTION = 6
    TAG = 7
    PROFILER = 8

    @property
    def is_phase(self) -> bool:
        return self <= ScopeKind.UNLOAD


class DelegateStage(IntEnum):
    INIT = 0
    EXECUTE = 1
    DESTROY = 2


class SegmentType(IntEnum):
    PROGRAM = 0
    CONSTANT = 1
    BACKEND = 2
    MUTABLE = 3
    EXTERNAL = 4
    NAMED = 16


class MemoryKind(IntEnum):
    """Where a heap's memory is."""

    HOST = 0
    GPU = 1
    NPU = 2
    DMA_BUF = 3
    OTHER_DEVICE = 4


class CounterUnit(IntEnum):
    NUMBER = 0
    BYTES = 1


class MisuseKind(IntEnum):
    SCOPE_END = 1
    SCOPE_OPEN = 2
    HEAP_TWICE = 3
    RANGE = 4
    SCOPE_KIND = 5


class RssLabel(IntEnum):
    START = 1
    PHASE_BEGIN = 2
    PHASE_END = 3
    EXIT = 4


@dataclass(frozen=True)
class Header:
    version: int
    pointer_bytes: int
    page_bytes: int
    pid: int
    arch: str
    start_realtime_ns: int
    start_monotonic_ns: int
    dropped_events: int
    agent_bytes: int
    closed: bool
    stopped: bool
    disk_full: bool
    forked_child: bool
    truncated: bool
    """The file ends before what its header promises: a torn tail was left out."""


@dataclass(frozen=True)
class Events:
    """All events in stamp order; equal-length columns.

    Those of a trace that was read from a file are loaded column by column, when one is first asked for.
    """

    stamp: U64
    kind: U8
    flags: U8
    address: U64
    size: U64
    scope: U32
    stack: U32
    thread: U32

    def __len__(self) -> int:
        return len(self.stamp)

    def batches(self, rows: int = 1 << 20) -> Iterator[Events]:
        """The same events in pieces of at most ``rows``: what a pass over all of them needs in memory."""
        for at in range(0, len(self), rows):
            yield Events(*(getattr(self, column.name)[at : at + rows] for column in fields(Events)))


@dataclass(frozen=True)
class Scope:
    id: int
    parent: int
    kind: ScopeKind
    name: str
    thread: int
    a: int
    b: int
    flags: int
    begin_stamp: int
    end_stamp: int | None
    """None: it never ended (the process did)."""
    begin_ns: int
    end_ns: int | None
    failed: bool
    category: str = ""
    """Of a TAG: the category that ``a`` names."""


@dataclass(frozen=True)
class Thread:
    tid: int
    parent: int
    scope: int
    start_routine: int
    stack_pointer: int
    existed_before: bool
    begin_stamp: int
    end_stamp: int | None
    time_ns: int


@dataclass(frozen=True)
class Claim:
    stamp: int
    address: int
    bytes: int
    owner: str
    category: str
    name: str
    scope: int


@dataclass(frozen=True)
class Heap:
    id: int
    name: str
    owner: str
    category: str
    scope: int
    stamp: int
    memory: MemoryKind = MemoryKind.HOST
    """Addresses of a heap whose memory is not the host's are its own: nothing else lies there."""


@dataclass(frozen=True)
class FileMap:
    stamp: int
    """Of the MAP event it explains."""
    address: int
    bytes: int
    offset: int
    path: str


@dataclass(frozen=True)
class RssSample:
    stamp: int
    time_ns: int
    label: RssLabel
    scope: int
    rss_bytes: int
    high_water_bytes: int
    locked_bytes: int
    file_rss_bytes: int


@dataclass(frozen=True)
class Snapshot:
    id: int
    stamp: int
    time_ns: int
    name: str
    scope: int
    scanned: bool
    """Whether ``pages`` was read (PAGEMAP_SCAN or /proc/self/pagemap)."""
    rss_bytes: int
    malloc_arena_bytes: int
    malloc_mmap_bytes: int
    malloc_used_bytes: int
    malloc_free_bytes: int
    maps: str
    """/proc/self/maps, raw."""
    pages: U64
    """Resident ranges, shape (n, 3): start, end, PAGEMAP_SCAN categories."""


@dataclass(frozen=True)
class Segment:
    id: int
    stamp: int
    address: int
    bytes: int
    offset: int
    type: SegmentType
    index: int
    name: str
    """Backend id of a BACKEND segment, key of a NAMED one."""
    scope: int
    program: int
    freed_stamp: int | None
    freed_scope: int


@dataclass(frozen=True)
class OwnMapping:
    stamp: int
    address: int
    bytes: int
    name: str


@dataclass(frozen=True)
class ModuleRecord:
    stamp: int
    base: int
    bytes: int
    path: str
    scope: int
    build_id: str


@dataclass(frozen=True)
class CounterValue:
    stamp: int
    time_ns: int
    name: str
    unit: CounterUnit
    value: int
    scope: int


@dataclass(frozen=True)
class Label:
    stamp: int
    address: int
    bytes: int
    name: str
    scope: int


@dataclass(frozen=True)
class Misuse:
    """A call of the C ABI that was not followed."""

    kind: MisuseKind
    name: str
    scope: int


@dataclass(frozen=True)
class PythonFrame:
    function: str
    file: str
    line: int


def as_number(text: str) -> int | None:
    """A number of a note: digits, as many as 64 bits have. None for all else, which a damaged trace may hold."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else None


@dataclass(frozen=True)
class Trace:
    """Everything one process recorded."""

    header: Header
    events: Events
    scopes: dict[int, Scope]
    threads: tuple[Thread, ...]
    claims: tuple[Claim, ...]
    heaps: dict[int, Heap]
    stacks: dict[int, tuple[int, ...]]
    file_maps: tuple[FileMap, ...]
    rss: tuple[RssSample, ...]
    snapshots: tuple[Snapshot, ...]
    segments: tuple[Segment, ...]
    notes: tuple[tuple[str, str], ...]
    own: tuple[OwnMapping, ...]
    modules: tuple[ModuleRecord, ...]
    python_stacks: dict[int, tuple[PythonFrame, ...]]
    """By phase scope: the Python frames that led to it, innermost first. Recorded with ``stacks``."""
    clock: U64
    """Points of the stamp-to-time line, shape (n, 2): stamp, time_ns; increasing in both."""
    counters: tuple[CounterValue, ...] = ()
    labels: tuple[Label, ...] = ()
    misuses: tuple[Misuse, ...] = ()

    def note(self, key: str) -> str | None:
        """The last note under a key."""
        return next((value for name, value in reversed(self.notes) if name == key), None)

    def number(self, key: str) -> int | None:
        """The last note under a key, where it is a number."""
        return as_number(self.note(key) or "")


class BlockKind(IntEnum):
    HEAP = 1
    ANONYMOUS = 2
    FILE = 3
    SHARED = 4
    """Shared anonymous: not private, not a file."""
    RESERVED = 5
    """PROT_NONE: address space only, counted nowhere."""


@dataclass(frozen=True)
class Blocks:
    """Memory blocks: one row per physical allocation (or per remaining piece of a mapping), by begin stamp.

    ``begin`` is the stamp of the event that made it, ``end`` of the one that ended it, or NEVER.
    """

    begin: U64
    end: U64
    address: U64
    bytes: U64
    kind: U8
    scope: U32
    stack: U32
    thread: U32
    file: npt.NDArray[np.int32]
    """Index into ``Trace.file_maps``, -1 for none."""
    function: U8
    """Flags of the ALLOC that made a heap block, MAPPED of all others."""
    freed_scope: U32
    """Scope and thread of the FREE or UNMAP that ended it; thread 0 where none was seen."""
    freed_thread: U32
    folded: U32
    """How many blocks the row stands for, all of its size; 0 for a block with a row of its own. See ``Folded``."""

    def __len__(self) -> int:
        return len(self.begin)

    @property
    def count(self) -> I64:
        """Blocks by row."""
        return np.maximum(self.folded, 1).astype(np.int64)


MAPPED = 255


@dataclass(frozen=True)
class Folded:
    """Short-lived heap blocks of a long trace, by begin, in 16 bytes each.

    Those that began and ended between two edges, and are alike in size, scope, stack, thread, function and who freed
    them, share the row of ``Blocks`` that the first of them has; an entry is one of them, the first included.
    """

    begin: U64
    life: U32
    """Stamps from its begin to its end."""
    row: U32

    def __len__(self) -> int:
        return len(self.begin)


NOT_FOLDED = Folded(np.empty(0, np.uint64), np.empty(0, np.uint32), np.empty(0, np.uint32))
