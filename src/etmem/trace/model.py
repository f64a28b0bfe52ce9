"""The passes in NumPy and Python: where there is no native library, and as the oracle of its tests."""

from __future__ import annotations

from array import array
from dataclasses import fields
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from etmem.trace.layout import SIZE_BITS, SIZE_MASK
from etmem.trace.meta import MAX_STAMP, damaged
from etmem.trace.passes import Column, Folding, HeapBlocks, LiveRows, Matcher, Records, Spans, Survey
from etmem.trace.tables import I64, NEVER, U32, U64, EventKind, Events

KNOWN_KINDS = np.isin(np.arange(256), [int(kind) for kind in EventKind])
_LIVE = int(NEVER)


class ModelPasses:
    """See ``Passes``."""

    def survey(self, records: Records, spans: Spans) -> Survey:
        events = unknown = last_stamp = 0
        first_stamp = MAX_STAMP
        for first, last in zip(spans.first.tolist(), spans.last.tolist(), strict=True):
            chunk = records[first:last]
            chunk = chunk[chunk["stamp"] != 0]
            if not len(chunk):
                continue
            _check(chunk)
            events += len(chunk)
            first_stamp = min(first_stamp, int(chunk["stamp"].min()))
            last_stamp = max(last_stamp, int(chunk["stamp"].max()))
            unknown += int(np.count_nonzero(chunk["scope"] != _known(chunk["scope"], spans)))
        return Survey(events, first_stamp if events else 0, last_stamp, unknown)

    def order(self, records: Records, spans: Spans, survey: Survey) -> U32:
        order = np.zeros(survey.last_stamp - survey.first_stamp + 1 if survey.events else 0, np.uint32)
        found = 0
        for first, last in zip(spans.first.tolist(), spans.last.tolist(), strict=True):
            stamps = records["stamp"][first:last]
            here = np.flatnonzero((stamps >= max(1, survey.first_stamp)) & (stamps <= survey.last_stamp))
            order[stamps[here] - np.uint64(survey.first_stamp)] = here + first
            found += len(here)
        kept: U32 = order[order != 0]
        if len(kept) != found:
            raise damaged("two events have one stamp")
        return kept

    def column(self, name: str, records: Records, order: U32, spans: Spans) -> Column:
        if name == "thread":
            thread: U32 = spans.threads[order // np.uint32(spans.slots_per_chunk)]
            return thread
        if name == "scope":
            return _known(records["scope"][order], spans)
        if name in ("stamp", "address", "stack"):
            column: Column = records[name][order]
            return column
        word: U64 = records["word"][order]
        if name == "size":
            return word & np.uint64(SIZE_MASK)
        shift = SIZE_BITS if name == "kind" else SIZE_BITS + 8
        return (word >> np.uint64(shift)).astype(np.uint8)

    def batch(self, records: Records, order: U32, spans: Spans) -> Events:
        return Events(*(self.column(field.name, records, order, spans) for field in fields(Events)))

    def matcher(self, capacity: int, folding: Folding | None = None) -> Matcher:  # noqa: ARG002 - it grows, and folds nothing
        return ModelMatcher()

    def timeline(self, rows: LiveRows, since: int, until: int, bins: U64 | None = None) -> tuple[U64, I64]:
        stamps, values = self._timeline(_unfolded(rows), since, until)
        if bins is None:
            return stamps, values
        kept = _of_bins(stamps, values, bins)
        # Two that are kept may be equal with another between them that is not.
        kept = kept[np.append(True, values[kept][1:] != values[kept][:-1])]
        return stamps[kept], values[kept]

    def numbers(self, planes: npt.NDArray[np.uint8], dtype: np.dtype[Any], *, steps: bool) -> Column:
        column: Column = planes[0].astype(dtype)
        # Most high planes are all zero: adding up the others takes a third of the time of transposing all.
        for place, plane in enumerate(planes[1:], start=1):
            if plane.any():
                high = plane.astype(dtype)
                high <<= dtype.type(8 * place)
                column |= high
        return np.cumsum(_unzigzag(column), dtype=np.uint64) if steps else column

    def _timeline(self, rows: LiveRows, since: int, until: int) -> tuple[U64, I64]:
        first, last = np.uint64(since), np.uint64(until)
        chosen = rows.wanted & (rows.end > first) & (rows.begin <= last) & (rows.weights != 0)
        begin, end, weights = rows.begin[chosen], rows.end[chosen], rows.weights[chosen]
        old, ends = begin <= first, end <= last
        stamps = np.concatenate([begin[~old], end[ends]])
        order = np.argsort(stamps)
        stamps = stamps[order]
        before = np.full(1, int(weights[old].sum()), np.int64)
        values = np.cumsum(np.concatenate([weights[~old], -weights[ends]])[order]) + before[0]
        # One event can end a mapping and begin its pieces: only the state after all of it ever existed.
        kept = np.append(stamps[1:] != stamps[:-1], True) if len(stamps) else np.empty(0, np.bool_)
        values = values[kept]
        changed = values != np.concatenate([before, values[:-1]])
        return (
            np.concatenate([np.zeros(1, np.uint64), stamps[kept][changed]]),
            np.concatenate([before, values[changed]]),
        )


def _unfolded(rows: LiveRows) -> LiveRows:
    """Each folded block as a row."""
    if rows.folded is None or not len(rows.brief):
        return rows
    alone, brief = rows.folded == 0, rows.brief
    return LiveRows(
        np.concatenate([rows.begin[alone], brief.begin]),
        np.concatenate([rows.end[alone], brief.begin + brief.life]),
        np.concatenate([rows.weights[alone], rows.weights[brief.row]]),
        np.concatenate([rows.wanted[alone], rows.wanted[brief.row]]),
    )


def _of_bins(stamps: U64, values: I64, bins: U64) -> I64:
    """Places of the first, lowest, highest and last value that begins in each bin, and of the one before all."""
    kept = {0}
    bounds = np.unique(np.concatenate([[1], np.searchsorted(stamps, bins[bins > 0], "left").clip(1), [len(stamps)]]))
    for begin, end in pairwise(bounds.tolist()):
        part = values[begin:end]
        kept |= {begin, begin + int(part.argmin()), begin + int(part.argmax()), end - 1}
    return np.array(sorted(kept), np.int64)


def _unzigzag(column: Column) -> Column:
    """In place: ``column`` is its caller's own."""
    signs = column & np.uint64(1)
    np.negative(signs, out=signs)
    column >>= np.uint64(1)
    column ^= signs
    return column


def _known(scopes: U32, spans: Spans) -> U32:
    """Unknown scopes become 0."""
    inside = np.minimum(scopes, len(spans.scopes) - 1)
    known: U32 = np.where((scopes == inside) & (spans.scopes[inside] != 0), scopes, np.uint32(0))
    return known


def _check(chunk: Records) -> None:
    kind = (chunk["word"] >> np.uint64(SIZE_BITS)).astype(np.uint8)
    if not KNOWN_KINDS[kind].all():
        raise damaged(f"an event of unknown kind {int(kind[~KNOWN_KINDS[kind]][0])}")
    size = np.where(kind == EventKind.BREAK, np.uint64(0), chunk["word"] & np.uint64(SIZE_MASK))
    if (chunk["address"] + size < chunk["address"]).any() or (chunk["stamp"] > MAX_STAMP).any():
        raise damaged("an event with an impossible address, size or stamp")


_TAKEN = ("stamp", "address", "size", "scope", "stack", "thread", "flags")


class ModelMatcher:
    """One dictionary from address to row, and what each thread freed and unmapped last.

    Only what decides an end is looked at event by event; the other columns are taken as they come.
    """

    def __init__(self) -> None:
        self.columns: list[tuple[Column, ...]] = []
        self.end = array("Q")
        self.freed_scope, self.freed_thread = array("I"), array("I")
        self.live: dict[int, int] = {}
        self.freed: dict[int, tuple[int, int | None, int]] = {}
        self.unmapped: dict[int, tuple[int, int]] = {}
        self.position = 0
        self.unmatched_frees = 0
        self.replaced_allocations = 0

    def feed(self, events: Events) -> npt.NDArray[np.bool_]:
        here = np.flatnonzero(events.kind == EventKind.ALLOC)
        self.columns.append(tuple(getattr(events, name)[here] for name in _TAKEN))
        undone = np.zeros(len(events), bool)
        columns = (events.kind, events.stamp, events.address, events.thread, events.scope)
        lists = (column.tolist() for column in columns)
        for at, (kind, stamp, address, thread, scope) in enumerate(zip(*lists, strict=True)):
            self.position += 1
            if kind == EventKind.ALLOC:
                self._allocate(stamp, address)
            elif kind == EventKind.FREE:
                self._release(stamp, address, thread, scope)
            elif kind == EventKind.UNMAP:
                self.unmapped[thread] = (address, self.position)
            elif kind == EventKind.UNDO:
                undone[at] = self._undo(address, thread)
        return undone

    def _allocate(self, stamp: int, address: int) -> None:
        missed = self.live.get(address)
        if missed is not None:  # its free was not seen
            self.end[missed] = stamp
            self.replaced_allocations += 1
        self.live[address] = len(self.end)
        self.end.append(_LIVE)
        self.freed_scope.append(0)
        self.freed_thread.append(0)

    def _release(self, stamp: int, address: int, thread: int, scope: int) -> None:
        row = self.live.pop(address, None)
        self.freed[thread] = (address, row, self.position)
        if row is None:
            self.unmatched_frees += 1
        else:
            self.end[row] = stamp
            self.freed_scope[row], self.freed_thread[row] = scope, thread

    def _undo(self, address: int, thread: int) -> bool:
        freed, row, when = self.freed.get(thread, (0, None, 0))
        unmapped, later = self.unmapped.get(thread, (0, 0))
        if when == 0 or freed != address or (unmapped == address and later > when):
            return False
        del self.freed[thread]
        if row is None:
            self.unmatched_frees -= 1
        elif address not in self.live:
            self.end[row] = _LIVE
            self.freed_scope[row] = self.freed_thread[row] = 0
            self.live[address] = row
        return True

    def finish(self) -> HeapBlocks:
        parts = list(zip(*self.columns, strict=True)) or [(np.empty(0, kind),) for kind in "QQQIIIB"]
        begin, address, size, scope, stack, thread, function = (np.concatenate(column) for column in parts)
        end = np.array(self.end, np.uint64)
        freed = (np.array(self.freed_scope, np.uint32), np.array(self.freed_thread, np.uint32))
        folded = np.zeros(len(begin), np.uint32)
        lost = (self.unmatched_frees, self.replaced_allocations, 0)
        return HeapBlocks(begin, end, address, size, scope, stack, thread, *freed, folded, function, *lost)
