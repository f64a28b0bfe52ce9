"""The passes in NumPy and Python: where there is no native library, and as the oracle of its tests."""

from __future__ import annotations

from array import array
from dataclasses import fields

import numpy as np
import numpy.typing as npt

from etmem.trace.layout import SIZE_BITS, SIZE_MASK
from etmem.trace.meta import MAX_STAMP, damaged
from etmem.trace.passes import Column, HeapBlocks, LiveRows, Matcher, Records, Spans, Survey
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

    def matcher(self, capacity: int) -> Matcher:  # noqa: ARG002 - it grows as it goes
        return ModelMatcher()

    def timeline(self, rows: LiveRows, since: int, until: int) -> tuple[U64, I64]:
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


class ModelMatcher:
    """One dictionary from address to row, and what each thread freed and unmapped last.

    Only what decides an end is looked at event by event; the other columns are taken as they come.
    """

    def __init__(self) -> None:
        self.columns: list[tuple[Column, ...]] = []
        self.end = array("Q")
        self.live: dict[int, int] = {}
        self.freed: dict[int, tuple[int, int | None, int]] = {}
        self.unmapped: dict[int, tuple[int, int]] = {}
        self.position = 0
        self.unmatched_frees = 0
        self.replaced_allocations = 0

    def feed(self, events: Events) -> npt.NDArray[np.bool_]:
        here = np.flatnonzero(events.kind == EventKind.ALLOC)
        self.columns.append(
            tuple(getattr(events, name)[here] for name in ("stamp", "address", "size", "scope", "stack", "thread"))
        )
        undone = np.zeros(len(events), bool)
        columns = (events.kind, events.stamp, events.address, events.thread)
        lists = (column.tolist() for column in columns)
        for at, (kind, stamp, address, thread) in enumerate(zip(*lists, strict=True)):
            self.position += 1
            if kind == EventKind.ALLOC:
                self._allocate(stamp, address)
            elif kind == EventKind.FREE:
                self._release(stamp, address, thread)
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

    def _release(self, stamp: int, address: int, thread: int) -> None:
        row = self.live.pop(address, None)
        self.freed[thread] = (address, row, self.position)
        if row is None:
            self.unmatched_frees += 1
        else:
            self.end[row] = stamp

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
            self.live[address] = row
        return True

    def finish(self) -> HeapBlocks:
        parts = list(zip(*self.columns, strict=True)) or [(np.empty(0, kind),) for kind in "QQQIII"]
        begin, address, size, scope, stack, thread = (np.concatenate(column) for column in parts)
        end = np.frombuffer(self.end, np.uint64) if self.end else np.empty(0, np.uint64)
        lost = (self.unmatched_frees, self.replaced_allocations)
        return HeapBlocks(begin, end, address, size, scope, stack, thread, *lost)
