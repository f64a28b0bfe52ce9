"""Writes valid traces without a process: for tests and for examples of the format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from struct import Struct

from etmem.trace import layout
from etmem.trace.layout import MetaType
from etmem.trace.recording import Recording
from etmem.trace.tables import CounterUnit, EventKind, MapFlag, MemoryKind, MisuseKind, RssLabel, ScopeKind, SegmentType


class TraceBuilder(Recording):
    """Records what it is told, in the order it is told, as the agent would.

    Every event and every entry takes the next stamp, and the clock moves on by ``step_ns`` with it. Calls
    belong to the current thread (``on(tid)`` changes it) and to that thread's innermost open scope, unless
    ``thread`` or ``scope`` say otherwise.
    """

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
    def scope(self, kind: ScopeKind, name: str = "", a: int = 0, b: int = 0, *, category: str = "") -> Iterator[int]:
        scope = self.scope_begin(kind, name, a, b, category=category)
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

    def heap(
        self,
        name: str,
        owner: str = "",
        category: str = "",
        *,
        memory: MemoryKind = MemoryKind.HOST,
        scope: int | None = None,
    ) -> int:
        """Registers a heap and returns its id."""
        heap = self._next("heap")
        names = (self.string(name), self.string(owner), self.string(category))
        self._meta(MetaType.HEAP, layout.HEAP, heap, *names, self._scope(scope, None), memory)
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

    def label(self, address: int, size: int, name: str, *, scope: int | None = None) -> int:
        return self._meta(MetaType.LABEL, layout.LABEL, address, size, self.string(name), self._scope(scope, None))

    def counter(self, name: str, value: int, unit: CounterUnit = CounterUnit.NUMBER) -> int:
        fields = (self.string(name), unit, self._scope(None, None), 0, value)
        return self._meta(MetaType.COUNTER, layout.COUNTER, *fields, time=True)

    def misuse(self, kind: MisuseKind, name: str = "", scope: int = 0) -> int:
        return self._meta(MetaType.MISUSE, layout.MISUSE, kind, self.string(name), scope, self._thread)

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
