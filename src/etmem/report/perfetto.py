"""A Perfetto trace: live bytes as counter tracks, phases, delegates and instructions as slices, RSS.

Field numbers are those of Perfetto's protos/perfetto/trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from etmem.analysis.keys import Key
from etmem.model.words import Unit
from etmem.report.protobuf import block, number, present, text
from etmem.report.samples import Series
from etmem.report.scope_names import ScopeNames
from etmem.report.told_series import told_series
from etmem.report.view import View
from etmem.trace.tables import Scope, ScopeKind

_BEGIN, _END, _COUNTER = 1, 2, 4
_UNIT_COUNT, _UNIT_BYTES = 2, 3
_BOOTTIME = 6
_SEQUENCE = 1
_PROCESS_TRACK, _FIRST_TRACK = 1, 2
SHOWN = (ScopeKind.DELEGATE, ScopeKind.INSTRUCTION, ScopeKind.TAG)
"""Besides phases; the profiler's own scopes are not shown."""


def render(view: View) -> bytes:
    """Descriptors first, then each track's events in their order, which is all that Perfetto asks for."""
    tracks = _Tracks(view)
    return b"".join([tracks.process(view.title), *tracks.slices(), *tracks.counters(), *tracks.told(), *tracks.rss()])


class _Tracks:
    def __init__(self, view: View) -> None:
        self._view = view
        self._next = _FIRST_TRACK
        self._pid = view.context.trace.header.pid
        self._start = view.context.trace.header.start_monotonic_ns

    def process(self, name: str) -> bytes:
        process = number(1, self._pid) + text(6, f"etmem: {name}")
        return _packet(None, block(60, number(1, _PROCESS_TRACK) + block(3, process)))

    def slices(self) -> Iterator[bytes]:
        """One track per thread that ran a phase."""
        names = ScopeNames(self._view.context)
        scopes = self._view.context.table.scopes
        shown = [scope for scope in scopes.values() if scope.kind.is_phase or scope.kind in SHOWN]
        for thread in dict.fromkeys(scope.thread for scope in shown):
            track = self._take()
            process_thread = number(1, self._pid) + number(2, thread)
            yield _packet(None, block(60, number(1, track) + block(4, process_thread) + number(5, _PROCESS_TRACK)))
            mine = [scope for scope in shown if scope.thread == thread]
            yield from self._nested(track, mine, names)

    def _nested(self, track: int, scopes: Iterable[Scope], names: ScopeNames) -> Iterator[bytes]:
        """Begins and ends by stamp: clocks of equal time would not keep them nested."""
        edges: list[tuple[int, int, Scope, int]] = []
        last = max((scope.begin_ns for scope in self._view.context.table.scopes.values()), default=0)
        for scope in scopes:
            edges.append((scope.begin_stamp, _BEGIN, scope, scope.begin_ns))
            end_stamp = scope.end_stamp if scope.end_stamp is not None else 2**62 - scope.begin_stamp
            edges.append((end_stamp, _END, scope, scope.end_ns if scope.end_ns is not None else last))
        for _, kind, scope, time in sorted(edges, key=lambda edge: edge[:2]):
            event = number(9, kind) + number(11, track)
            if kind == _BEGIN:
                event += text(22, scope.kind.name.lower()) + text(23, names.path(scope.id)[-1])
            yield _packet(time, block(11, event))

    def counters(self) -> Iterator[bytes]:
        """Live bytes of each owner, and of each category of an owner; file-backed ones apart."""
        keys = self._view.context.keys
        groups: dict[str, list[Series]] = {}
        for series in self._view.samples.series:
            for name in counter_names(keys[series.key], file=series.file):
                groups.setdefault(name, []).append(series)
        for name in sorted(groups):
            columns = [series.values for series in groups[name]]
            yield from self._counter(name, self._sampled([sum(values) for values in zip(*columns, strict=True)]))

    def rss(self) -> Iterator[bytes]:
        rows = self._view.context.trace.rss
        if not rows or self._view.context.options.dry:
            return
        yield from self._counter("RSS", [(row.time_ns, row.rss_bytes) for row in rows])
        marks = [(before.time_ns, after.high_water_bytes) for before, after in pairwise(rows) if after.high_water_bytes]
        if marks:
            yield from self._counter("RSS high water", marks)

    def told(self) -> Iterator[bytes]:
        """Memory of devices and the program's own counters, at most as many points as the page has."""
        for series in told_series(self._view.context):
            points = [(time + self._start, value) for time, value in zip(series.times_ns, series.values, strict=True)]
            name = f"device: {series.name}" if series.kind == "device" else f"counter: {series.name}"
            yield from self._counter(name, points, _UNIT_BYTES if series.unit is Unit.BYTES else _UNIT_COUNT)

    def _sampled(self, values: Sequence[int]) -> list[tuple[int, int]]:
        times = self._view.samples.times_ns
        points = list(zip(times, values, strict=True))
        changed = points[:1] + [after for before, after in pairwise(points) if before[1] != after[1]]
        return [(time + self._start, value) for time, value in changed]

    def _counter(self, name: str, points: Iterable[tuple[int, int]], unit: int = _UNIT_BYTES) -> Iterator[bytes]:
        track = self._take()
        counter = block(8, number(3, unit))
        yield _packet(None, block(60, number(1, track) + text(2, name) + number(5, _PROCESS_TRACK) + counter))
        for time, value in points:
            yield _packet(time, block(11, number(9, _COUNTER) + number(11, track) + present(30, value)))

    def _take(self) -> int:
        self._next += 1
        return self._next - 1


def counter_names(key: Key, *, file: bool) -> tuple[str, str]:
    backing = " (file)" if file else ""
    return f"{key.owner}{backing}", f"{key.owner}: {key.category.value}{backing}"


def _packet(time: int | None, content: bytes) -> bytes:
    stamp = number(8, time) + number(58, _BOOTTIME) if time is not None else b""
    return block(1, stamp + number(10, _SEQUENCE) + content)
