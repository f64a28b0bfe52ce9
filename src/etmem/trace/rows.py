"""From entries to rows: ids become names, begins meet their ends, parts become whole."""

from __future__ import annotations

from itertools import chain
from typing import Any, TypeVar

import numpy as np

from etmem.trace import layout
from etmem.trace.layout import MetaType
from etmem.trace.meta import MAX_NS, MAX_STAMP, Entries, Entry, damaged
from etmem.trace.tables import (
    U64,
    Claim,
    CounterUnit,
    CounterValue,
    Events,
    FileMap,
    Header,
    Heap,
    Label,
    MemoryKind,
    Misuse,
    MisuseKind,
    ModuleRecord,
    OwnMapping,
    PythonFrame,
    RssLabel,
    RssSample,
    Scope,
    ScopeKind,
    Segment,
    SegmentType,
    Snapshot,
    Thread,
    Trace,
)

MAX_SCOPE = 1 << 24
"""Ids count up from 1, and tables have a row for each."""

E = TypeVar("E", CounterUnit, MemoryKind, MisuseKind, RssLabel, ScopeKind, SegmentType)


def is_whole(header: Header) -> bool:
    """Whether the process closed its trace and lost nothing: every id that is used is then defined."""
    return header.closed and not (header.stopped or header.disk_full or header.truncated or header.dropped_events)


def assemble(header: Header, entries: Entries, points: list[tuple[int, int]], events: Events) -> Trace:
    """A Trace of its parts, its rows in stamp order. ``points`` are the (stamp, time_ns) of the chunks.

    In a trace that is known to be incomplete an id that nothing defines becomes 0, or the empty string, and
    an end without a begin is left out; in one that is whole it is a TraceError.
    """
    return _Builder(entries, is_whole(header)).build(header, points, events)


class _Builder:
    def __init__(self, entries: Entries, strict: bool) -> None:
        self.entries = entries
        self.strict = strict
        self.strings: dict[int, str] = {0: ""} | _unique(
            "string", ((e.fields[0], e.tail.decode("utf-8", "surrogateescape")) for e in entries[MetaType.STRING])
        )
        self.scopes: dict[int, Scope] = {}

    def build(self, header: Header, points: list[tuple[int, int]], events: Events) -> Trace:
        self.scopes = self._scopes()
        return Trace(
            header=header,
            events=events,
            scopes=self.scopes,
            threads=self._threads(),
            claims=tuple(self._claim(e) for e in self._ordered(MetaType.CLAIM)),
            heaps=_unique("heap", ((e.fields[0], self._heap(e)) for e in self._ordered(MetaType.HEAP))),
            stacks=_unique("stack", ((e.fields[0], _frames(e)) for e in self.entries[MetaType.STACK])),
            file_maps=tuple(self._file_map(e) for e in self._ordered(MetaType.FILE_MAP)),
            rss=tuple(self._rss(e) for e in self._ordered(MetaType.RSS)),
            snapshots=self._snapshots(),
            segments=self._segments(),
            notes=tuple((self._text(e.fields[0]), self._text(e.fields[1])) for e in self._ordered(MetaType.NOTE)),
            own=tuple(self._own(e) for e in self._ordered(MetaType.OWN)),
            modules=tuple(self._module(e) for e in self._ordered(MetaType.MODULE)),
            python_stacks=_unique("Python stack", (self._python(e) for e in self.entries[MetaType.PYTHON_STACK])),
            clock=self._clock(points),
            counters=tuple(self._counter(e) for e in self._ordered(MetaType.COUNTER)),
            labels=tuple(self._label(e) for e in self._ordered(MetaType.LABEL)),
            misuses=tuple(self._misuse(e) for e in self._ordered(MetaType.MISUSE)),
        )

    # References.

    def _ordered(self, kind: MetaType) -> list[Entry]:
        return sorted(self.entries[kind], key=lambda entry: entry.stamp)

    def _text(self, string: int) -> str:
        text = self.strings.get(string)
        if text is None:
            self._missing(f"string {string}")
            return ""
        return text

    def _scope(self, scope: int) -> int:
        if scope == 0 or scope in self.scopes:
            return scope
        self._missing(f"scope {scope}")
        return 0

    def _missing(self, what: str) -> None:
        if self.strict:
            raise damaged(f"nothing defines {what}")

    # Rows.

    def _scopes(self) -> dict[int, Scope]:
        ends: dict[int, Entry] = _unique("scope end", ((e.fields[0], e) for e in self.entries[MetaType.SCOPE_END]))
        begins = _unique("scope", ((e.fields[0], e) for e in self._ordered(MetaType.SCOPE_BEGIN)))
        highest = max(begins, default=1)
        if 0 in begins or highest > MAX_SCOPE:
            raise damaged(f"a scope with id {0 if 0 in begins else highest}")
        for scope in ends.keys() - begins.keys():
            self._missing(f"scope {scope}, which ends")
        return {scope: self._scope_row(begin, begins, ends.get(scope)) for scope, begin in begins.items()}

    def _scope_row(self, begin: Entry, known: dict[int, Entry], end: Entry | None) -> Scope:
        scope, parent, kind, name, thread, flags, a, b, begin_ns = begin.fields
        if parent >= scope:  # ids grow: this is what keeps the chain of parents free of cycles
            raise damaged(f"scope {scope} says that it is inside scope {parent}")
        if parent and parent not in known:
            self._missing(f"scope {parent}, the parent of {scope}")
            parent = 0
        if end is not None and end.stamp <= begin.stamp:
            raise damaged(f"scope {scope} ends before it begins")
        kind = _member(ScopeKind, kind, "scope kind")
        return Scope(
            id=scope,
            parent=parent,
            kind=kind,
            name=self._text(name),
            thread=thread,
            a=a,
            b=b,
            flags=flags,
            begin_stamp=begin.stamp,
            end_stamp=None if end is None else end.stamp,
            begin_ns=begin_ns,
            end_ns=None if end is None else max(begin_ns, end.fields[2]),
            failed=end is not None and end.fields[1] != 0,
            category=self._text(a) if kind is ScopeKind.TAG else "",
        )

    def _threads(self) -> tuple[Thread, ...]:
        """A tid may live more than once: an end belongs to the last begin before it."""
        rows: list[dict[str, Any]] = []
        last: dict[int, dict[str, Any]] = {}
        for kind, entry in self.entries.in_order(MetaType.THREAD, MetaType.THREAD_END):
            tid = entry.fields[0]
            if kind is MetaType.THREAD:
                _, parent, scope, flags, start_routine, stack_pointer, time_ns = entry.fields
                last[tid] = {
                    "tid": tid,
                    "parent": parent,
                    "scope": self._scope(scope),
                    "start_routine": start_routine,
                    "stack_pointer": stack_pointer,
                    "existed_before": bool(flags & 1),
                    "begin_stamp": entry.stamp,
                    "end_stamp": None,
                    "time_ns": time_ns,
                }
                rows.append(last[tid])
            elif tid in last:
                last.pop(tid)["end_stamp"] = entry.stamp
        return tuple(Thread(**row) for row in rows)

    def _claim(self, entry: Entry) -> Claim:
        address, size, owner, category, name, scope = entry.fields
        _check_range("claim", address, size)
        names = (self._text(owner), self._text(category), self._text(name))
        return Claim(entry.stamp, address, size, *names, self._scope(scope))

    def _heap(self, entry: Entry) -> Heap:
        heap, name, owner, category, scope, memory = entry.fields
        names = (self._text(name), self._text(owner), self._text(category))
        kind = _member(MemoryKind, memory, "kind of memory")
        return Heap(heap, *names, self._scope(scope), entry.stamp, kind)

    def _file_map(self, entry: Entry) -> FileMap:
        address, size, offset, path, _ = entry.fields
        _check_range("file mapping", address, size)
        return FileMap(entry.stamp, address, size, offset, self._text(path))

    def _rss(self, entry: Entry) -> RssSample:
        """The sample at a phase's begin comes before the scope: the process may have ended in between."""
        label, scope, time_ns, *sizes = entry.fields
        scope = scope if scope in self.scopes else 0
        return RssSample(entry.stamp, time_ns, _member(RssLabel, label, "RSS label"), scope, *sizes)

    def _snapshots(self) -> tuple[Snapshot, ...]:
        """The parts are written before the snapshot: parts alone are one that was never finished."""
        maps = self._parts(MetaType.SNAPSHOT_MAPS)
        pages = self._parts(MetaType.SNAPSHOT_PAGES)
        rows = []
        for entry in self._ordered(MetaType.SNAPSHOT):
            snapshot, name, scope, flags, time_ns, rss_bytes, arena, mapped, used, free = entry.fields
            ranges = np.frombuffer(pages.pop(snapshot, b""), "<u8").astype(np.uint64, copy=False).reshape(-1, 3)
            if len(ranges) and not (ranges[:, 0] < ranges[:, 1]).all():
                raise damaged(f"snapshot {snapshot} has an empty page range")
            text = maps.pop(snapshot, b"").decode("utf-8", "surrogateescape")
            if not all(map(layout.MAPPING.match, text.split("\n")[:-1])):
                raise damaged(f"snapshot {snapshot} has lines of /proc/self/maps that are none")
            row = Snapshot(
                id=snapshot,
                stamp=entry.stamp,
                time_ns=time_ns,
                name=self._text(name),
                scope=self._scope(scope),
                scanned=bool(flags & layout.SNAPSHOT_READ),
                rss_bytes=rss_bytes,
                malloc_arena_bytes=arena,
                malloc_mmap_bytes=mapped,
                malloc_used_bytes=used,
                malloc_free_bytes=free,
                maps=text,
                pages=ranges,
            )
            rows.append(row)
        _unique("snapshot", ((row.id, row) for row in rows))
        return tuple(rows)

    def _parts(self, kind: MetaType) -> dict[int, bytes]:
        """Numbers rise as parts are written; one that does not starts over, after a way of reading that failed."""
        parts: dict[int, list[bytes]] = {}
        last: dict[int, int] = {}
        for entry in self.entries[kind]:
            snapshot, part, *_ = entry.fields
            if part <= last.get(snapshot, -1) or snapshot not in parts:
                parts[snapshot] = []
            parts[snapshot].append(entry.tail)
            last[snapshot] = part
        return {snapshot: b"".join(tails) for snapshot, tails in parts.items()}

    def _segments(self) -> tuple[Segment, ...]:
        frees = _unique("segment free", ((e.fields[0], e) for e in self.entries[MetaType.SEGMENT_FREE]))
        rows = [self._segment(e, frees.get(e.fields[3])) for e in self._ordered(MetaType.SEGMENT)]
        known = _unique("segment", ((row.id, row) for row in rows))
        for segment in frees.keys() - known.keys():
            self._missing(f"segment {segment}, which is freed")
        return tuple(rows)

    def _segment(self, entry: Entry, free: Entry | None) -> Segment:
        address, size, offset, segment, kind, index, name, scope, program = entry.fields
        _check_range("segment", address, size)
        if free is not None and free.stamp <= entry.stamp:
            raise damaged(f"segment {segment} is freed before it is loaded")
        return Segment(
            id=segment,
            stamp=entry.stamp,
            address=address,
            bytes=size,
            offset=offset,
            type=_member(SegmentType, kind, "segment type"),
            index=index,
            name=self._text(name),
            scope=self._scope(scope),
            program=program,
            freed_stamp=None if free is None else free.stamp,
            freed_scope=0 if free is None else self._scope(free.fields[1]),
        )

    def _own(self, entry: Entry) -> OwnMapping:
        address, size, name, _ = entry.fields
        _check_range("mapping of the profiler", address, size, 1 << 63)
        return OwnMapping(entry.stamp, address, size, self._text(name))

    def _python(self, entry: Entry) -> tuple[int, tuple[PythonFrame, ...]]:
        frames = layout.PYTHON_FRAME.iter_unpack(entry.tail)
        rows = tuple(PythonFrame(self._text(function), self._text(file), line) for function, file, line, _ in frames)
        return self._scope(entry.fields[0]), rows

    def _module(self, entry: Entry) -> ModuleRecord:
        base, size, path, scope, build_id, _ = entry.fields
        _check_range("module", base, size)
        return ModuleRecord(entry.stamp, base, size, self._text(path), self._scope(scope), self._text(build_id))

    def _counter(self, entry: Entry) -> CounterValue:
        name, unit, scope, _, value, time_ns = entry.fields
        kind = _member(CounterUnit, unit, "unit of a counter")
        return CounterValue(entry.stamp, time_ns, self._text(name), kind, value, self._scope(scope))

    def _label(self, entry: Entry) -> Label:
        address, size, name, scope = entry.fields
        _check_range("label", address, size)
        return Label(entry.stamp, address, size, self._text(name), self._scope(scope))

    def _misuse(self, entry: Entry) -> Misuse:
        kind, name, scope, _ = entry.fields
        # The scope of a call that was wrong may be none that there ever was.
        return Misuse(_member(MisuseKind, kind, "kind of misuse"), self._text(name), scope)

    def _clock(self, points: list[tuple[int, int]]) -> U64:
        """Threads take stamp and time one after the other: a point that goes back in time is left out. So is
        one without a time, of a chunk that was added to the file later."""
        if any(stamp > MAX_STAMP or time_ns > MAX_NS for stamp, time_ns in points):
            raise damaged("a chunk with an impossible stamp or time")
        scopes = chain(self.entries[MetaType.SCOPE_BEGIN], self.entries[MetaType.SCOPE_END])
        rising: list[tuple[int, int]] = []
        for stamp, time_ns in sorted(points + [(entry.stamp, entry.fields[-1]) for entry in scopes]):
            if time_ns and (not rising or (stamp > rising[-1][0] and time_ns > rising[-1][1])):
                rising.append((stamp, time_ns))
        return np.array(rising, np.uint64).reshape(-1, 2)


def _unique(what: str, pairs: Any) -> dict[int, Any]:
    found: dict[int, Any] = {}
    for key, value in pairs:
        if key in found:
            raise damaged(f"{what} {key} is there twice")
        found[key] = value
    return found


def _member(kind: type[E], value: int, what: str) -> E:
    try:
        return kind(value)
    except ValueError:
        raise damaged(f"unknown {what} {value}") from None


def _check_range(what: str, address: int, size: int, most: int = 1 << 64) -> None:
    """The top bits of an address may be a tag; what the kernel maps has none."""
    if address + size >= most:
        raise damaged(f"a {what} of {size} bytes at {address:#x}")


def _frames(entry: Entry) -> tuple[int, ...]:
    return tuple(np.frombuffer(entry.tail, "<u8").tolist())
