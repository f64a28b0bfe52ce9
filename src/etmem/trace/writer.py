"""Writes valid traces without a process: for tests and for examples of the format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from struct import Struct
from typing import Any

from etmem.trace import layout
from etmem.trace.layout import ChunkKind, MetaType, Status
from etmem.trace.reader import parse
from etmem.trace.tables import EventKind, MapFlag, RssLabel, ScopeKind, SegmentType, Trace


class _Chunk:
    """One chunk being filled."""

    def __init__(self, header: bytes, capacity: int) -> None:
        self.payload = bytearray(header)
        self.capacity = capacity

    def fits(self, size: int) -> bool:
        return len(self.payload) + size <= self.capacity

    def bytes(self) -> bytes:
        return bytes(self.payload).ljust(self.capacity, b"\0")


class TraceBuilder:
    """Records what it is told, in the order it is told, as the agent would.

    Every event and every entry takes the next stamp, and the clock moves on by ``step_ns`` with it. Calls
    belong to the current thread (``on(tid)`` changes it) and to that thread's innermost open scope, unless
    ``thread`` or ``scope`` say otherwise.
    """

    def __init__(
        self, *, pid: int = 1000, arch: str = "x86_64", step_ns: int = 1000, chunk_bytes: int = layout.CHUNK_BYTES
    ) -> None:
        self.pid = pid
        self.arch = arch
        self.step_ns = step_ns
        self.chunk_bytes = chunk_bytes
        self.start_ns = 1_000_000
        self.stamp = 0
        """The last stamp given."""
        self.dropped_events = 0
        self.agent_bytes = 0
        self.status = Status.CLOSED
        self._elapsed_ns = 0
        self._thread = pid
        self._chunks: list[_Chunk] = []
        self._open: dict[int, _Chunk] = {}
        self._strings: dict[str, int] = {"": 0}
        self._stacks: dict[tuple[int, ...], int] = {(): 0}
        self._scopes: dict[int, list[int]] = {}
        self._ids = dict.fromkeys(("scope", "heap", "segment", "snapshot"), 0)

    @property
    def time_ns(self) -> int:
        return self.start_ns + self._elapsed_ns

    def advance(self, ns: int) -> None:
        """Lets time pass with nothing recorded."""
        self._elapsed_ns += ns

    @contextmanager
    def on(self, thread: int) -> Iterator[None]:
        """Within it, calls are made by this thread."""
        previous, self._thread = self._thread, thread
        try:
            yield
        finally:
            self._thread = previous

    def string(self, text: str) -> int:
        known = self._strings.get(text)
        if known is None:
            known = self._strings[text] = len(self._strings)
            data = text.encode("utf-8", "surrogateescape")
            self._meta(MetaType.STRING, layout.STRING.pack(known, len(data)) + data)
        return known

    # Scopes and threads.

    def scope_begin(
        self,
        kind: ScopeKind,
        name: str = "",
        a: int = 0,
        b: int = 0,
        *,
        flags: int = 0,
        category: str = "",
        parent: int | None = None,
        thread: int | None = None,
    ) -> int:
        """Opens a scope and returns its id; ``category`` is a TAG's, and takes the place of ``a``."""
        a = self.string(category) if category else a
        tid = self._thread if thread is None else thread
        open_scopes = self._scopes.setdefault(tid, [])
        if parent is None:
            parent = open_scopes[-1] if open_scopes else 0
        scope = self._next("scope")
        fields = (scope, parent, kind, self.string(name), tid, flags, a, b)
        self._meta(MetaType.SCOPE_BEGIN, layout.SCOPE_BEGIN, *fields, time=True)
        open_scopes.append(scope)
        return scope

    def scope_end(self, scope: int, failed: bool = False) -> int:
        """Returns the stamp of the end."""
        for open_scopes in self._scopes.values():
            if scope in open_scopes:
                open_scopes.remove(scope)
        return self._meta(MetaType.SCOPE_END, layout.SCOPE_END, scope, int(failed), time=True)

    @contextmanager
    def scope(self, kind: ScopeKind, name: str = "", a: int = 0, b: int = 0) -> Iterator[int]:
        scope = self.scope_begin(kind, name, a, b)
        yield scope
        self.scope_end(scope)

    def thread(
        self,
        tid: int,
        *,
        parent: int | None = None,
        scope: int | None = None,
        start_routine: int = 0,
        stack_pointer: int = 0,
        existed_before: bool = False,
    ) -> int:
        fields = (self._thread if parent is None else parent, self._scope(scope, None), int(existed_before))
        return self._meta(MetaType.THREAD, layout.THREAD, tid, *fields, start_routine, stack_pointer, time=True)

    def thread_end(self, tid: int) -> int:
        return self._meta(MetaType.THREAD_END, layout.THREAD_END, tid, 0)

    # Events; each returns its stamp.

    def alloc(
        self,
        address: int,
        size: int,
        *,
        scope: int | None = None,
        stack: Sequence[int] = (),
        function: int = 0,
        thread: int | None = None,
    ) -> int:
        return self._event(EventKind.ALLOC, address, size, function, scope, self._stack(stack), thread)

    def free(self, address: int, *, scope: int | None = None, thread: int | None = None) -> int:
        return self._event(EventKind.FREE, address, 0, 0, scope, 0, thread)

    def undo(self, address: int, *, scope: int | None = None, thread: int | None = None) -> int:
        return self._event(EventKind.UNDO, address, 0, 0, scope, 0, thread)

    def map(
        self,
        address: int,
        size: int,
        *,
        path: str | None = None,
        offset: int = 0,
        flags: MapFlag | int = 0,
        scope: int | None = None,
        stack: Sequence[int] = (),
        thread: int | None = None,
    ) -> int:
        if path is not None:
            flags |= MapFlag.FILE
            self.string(path)
        stamp = self._event(EventKind.MAP, address, size, flags, scope, self._stack(stack), thread)
        if path is not None:
            tid = self._thread if thread is None else thread
            fields = (address, size, offset, self.string(path), tid)
            self._meta(MetaType.FILE_MAP, layout.FILE_MAP, *fields, stamp=stamp)
        return stamp

    def unmap(self, address: int, size: int, *, scope: int | None = None, thread: int | None = None) -> int:
        return self._event(EventKind.UNMAP, address, size, 0, scope, 0, thread)

    def advise(self, address: int, size: int, *, free: bool = False) -> int:
        return self._event(EventKind.ADVISE, address, size, int(free))

    def protect(self, address: int, size: int, *, none: bool = False) -> int:
        return self._event(EventKind.PROTECT, address, size, int(none))

    def brk(self, end: int, growth: int, *, scope: int | None = None) -> int:
        """``end`` is the program break afterwards, ``growth`` the bytes added (negative when it shrank)."""
        return self._event(EventKind.BREAK, end, growth & layout.SIZE_MASK, 0, scope)

    def heap(self, name: str, owner: str = "", category: str = "", *, scope: int | None = None) -> int:
        """Registers a heap and returns its id."""
        heap = self._next("heap")
        names = (self.string(name), self.string(owner), self.string(category))
        self._meta(MetaType.HEAP, layout.HEAP, heap, *names, self._scope(scope, None), 0)
        return heap

    def heap_alloc(self, heap: int, address: int, size: int, *, scope: int | None = None) -> int:
        return self._event(EventKind.HEAP_ALLOC, address, size, 0, scope, heap)

    def heap_free(self, heap: int, address: int) -> int:
        return self._event(EventKind.HEAP_FREE, address, stack=heap)

    def heap_reset(self, heap: int) -> int:
        return self._event(EventKind.HEAP_RESET, stack=heap)

    # What the events mean.

    def claim(
        self,
        address: int,
        size: int,
        owner: str,
        category: str = "",
        name: str = "",
        *,
        scope: int | None = None,
    ) -> int:
        names = (self.string(owner), self.string(category), self.string(name))
        return self._meta(MetaType.CLAIM, layout.CLAIM, address, size, *names, self._scope(scope, None))

    def segment(
        self,
        address: int,
        size: int,
        *,
        offset: int = 0,
        type: SegmentType = SegmentType.PROGRAM,  # noqa: A002 - the column's name
        index: int = 0,
        name: str = "",
        scope: int | None = None,
        program: int = 1,
    ) -> int:
        """Records a piece of a program file in memory and returns its id."""
        segment = self._next("segment")
        fields = (address, size, offset, segment, type, index, self.string(name), self._scope(scope, None), program)
        self._meta(MetaType.SEGMENT, layout.SEGMENT, *fields)
        return segment

    def segment_free(self, segment: int, *, scope: int | None = None) -> int:
        return self._meta(MetaType.SEGMENT_FREE, layout.SEGMENT_FREE, segment, self._scope(scope, None))

    def rss(
        self,
        label: RssLabel,
        rss_bytes: int,
        *,
        high_water_bytes: int | None = None,
        locked_bytes: int = 0,
        file_rss_bytes: int = 0,
        scope: int | None = None,
    ) -> int:
        high_water = rss_bytes if high_water_bytes is None else high_water_bytes
        fields = (label, self._scope(scope, None), self.time_ns, rss_bytes, high_water, locked_bytes, file_rss_bytes)
        return self._meta(MetaType.RSS, layout.RSS, *fields)

    def snapshot(
        self,
        name: str,
        *,
        rss_bytes: int = 0,
        maps: str = "",
        pages: Sequence[tuple[int, int, int]] | None = None,
        malloc_arena_bytes: int = 0,
        malloc_mmap_bytes: int = 0,
        malloc_used_bytes: int = 0,
        malloc_free_bytes: int = 0,
        scope: int | None = None,
        part_bytes: int = 16 * 1024,
    ) -> int:
        """Records a snapshot and returns its id. ``pages`` are (start, end, categories); None: not read."""
        snapshot = self._next("snapshot")
        malloc = (malloc_arena_bytes, malloc_mmap_bytes, malloc_used_bytes, malloc_free_bytes)
        head = (snapshot, self.string(name), self._scope(scope, None), int(pages is not None), self.time_ns)
        self._meta(MetaType.SNAPSHOT, layout.SNAPSHOT, *head, rss_bytes, *malloc)
        text = maps.encode()
        part_bytes = min(part_bytes, self.chunk_bytes // 2)
        for part, begin in enumerate(range(0, len(text), part_bytes)):
            piece = text[begin : begin + part_bytes]
            self._meta(MetaType.SNAPSHOT_MAPS, layout.SNAPSHOT_PART.pack(snapshot, part, len(piece), 0) + piece)
        rows = part_bytes // 24
        for part, begin in enumerate(range(0, len(pages or ()), rows)):
            ranges = (pages or ())[begin : begin + rows]
            data = b"".join(Struct("<3Q").pack(*page) for page in ranges)
            self._meta(MetaType.SNAPSHOT_PAGES, layout.SNAPSHOT_PART.pack(snapshot, part, len(ranges), 0) + data)
        return snapshot

    def note(self, key: str, value: str) -> int:
        return self._meta(MetaType.NOTE, layout.NOTE, self.string(key), self.string(value))

    def own(self, address: int, size: int, name: str = "") -> int:
        return self._meta(MetaType.OWN, layout.OWN, address, size, self.string(name), 0)

    def module(self, base: int, size: int, path: str, *, scope: int | None = None, build_id: str = "") -> int:
        names = (self.string(path), self._scope(scope, None), self.string(build_id))
        return self._meta(MetaType.MODULE, layout.MODULE, base, size, *names, 0)

    # The result.

    def to_bytes(self) -> bytes:
        """The file as the agent would leave it."""
        sizes = (layout.HEADER_BYTES, self.chunk_bytes, layout.EVENT_DTYPE.itemsize)
        counts = (len(self._chunks), self.stamp, self.dropped_events, self.agent_bytes)
        header = layout.HEADER.pack(
            layout.MAGIC, layout.VERSION, *sizes, layout.BYTE_ORDER, 8, 4096, self.pid,
            self.arch.encode(), 1_700_000_000_000_000_000, self.start_ns, *counts, self.status, 0,
        )  # fmt: skip
        return header.ljust(layout.HEADER_BYTES, b"\0") + b"".join(chunk.bytes() for chunk in self._chunks)

    def write(self, path: Path) -> Path:
        path.write_bytes(self.to_bytes())
        return path

    def trace(self) -> Trace:
        return parse(self.to_bytes())

    # Records.

    def _next(self, kind: str) -> int:
        self._ids[kind] += 1
        return self._ids[kind]

    def _tick(self) -> int:
        self.stamp += 1
        self._elapsed_ns += self.step_ns
        return self.stamp

    def _scope(self, scope: int | None, thread: int | None) -> int:
        if scope is not None:
            return scope
        open_scopes = self._scopes.get(self._thread if thread is None else thread)
        return open_scopes[-1] if open_scopes else 0

    def _stack(self, frames: Sequence[int]) -> int:
        key = tuple(frames)
        known = self._stacks.get(key)
        if known is None:
            known = self._stacks[key] = len(self._stacks)
            data = b"".join(frame.to_bytes(8, "little") for frame in key)
            self._meta(MetaType.STACK, layout.STACK.pack(known, len(key)) + data)
        return known

    def _event(
        self,
        kind: EventKind,
        address: int = 0,
        size: int = 0,
        flags: int = 0,
        scope: int | None = None,
        stack: int = 0,
        thread: int | None = None,
    ) -> int:
        tid = self._thread if thread is None else thread
        chunk = self._room(ChunkKind.EVENTS, tid, layout.EVENT_DTYPE.itemsize)
        stamp = self._tick()
        word = size | kind << layout.SIZE_BITS | flags << layout.SIZE_BITS + 8
        chunk.payload += Struct("<3Q2I").pack(stamp, address, word, self._scope(scope, tid), stack)
        return stamp

    def _meta(
        self, kind: MetaType, body: bytes | Struct, *fields: Any, stamp: int | None = None, time: bool = False
    ) -> int:
        """Appends one entry; ``time`` adds its moment as the last field."""
        stamp = self._tick() if stamp is None else stamp
        if isinstance(body, Struct):
            body = body.pack(*fields, *((self.time_ns,) if time else ()))
        size = layout.META.size + len(body) + 7 & ~7
        chunk = self._room(ChunkKind.META, 0, size)
        chunk.payload += (layout.META.pack(kind, size, stamp) + body).ljust(size, b"\0")
        return stamp

    def _room(self, kind: ChunkKind, thread: int, size: int) -> _Chunk:
        chunk = self._open.get(thread)
        if chunk is None or not chunk.fits(size):
            place = (layout.CHUNK_MAGIC, kind, thread, len(self._chunks), self.time_ns, self.stamp)
            chunk = _Chunk(layout.CHUNK.pack(*place, 0, 0, 0, 0), self.chunk_bytes)
            if not chunk.fits(size):
                raise ValueError(f"an entry of {size} bytes does not fit into a chunk of {self.chunk_bytes}")
            self._open[thread] = chunk
            self._chunks.append(chunk)
        return chunk
