"""From events to memory blocks: every physical allocation once, with its begin and its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from etmem.trace.columns import DTYPES
from etmem.trace.events import COLUMNS
from etmem.trace.mappings import Row, follow, is_mapping
from etmem.trace.native import passes
from etmem.trace.passes import Column, Folding, HeapBlocks, Passes
from etmem.trace.tables import MAPPED, BlockKind, Blocks, EventKind, Events, Folded, Trace, last_of


@dataclass(frozen=True)
class BlockStats:
    """What did not fit together."""

    unmatched_frees: int
    """Frees of blocks that were never seen: allocated before recording began, or by a route that is not hooked."""
    replaced_allocations: int
    """Allocations at an address that was still live: its free was not seen, and the old block ends there."""
    unmatched_undos: int


@dataclass(frozen=True)
class Matched:
    """One pass over the events of a trace."""

    blocks: Blocks
    """By begin: heap blocks, and mappings as ``mappings.follow`` describes them."""
    brief: Folded
    events: Events
    """Those of mappings and of registered heaps."""
    stats: BlockStats
    last_stamp: int
    """Of any block's begin or end, 0 for none."""


def match(trace: Trace, folding: Folding | None = None, use: Passes | None = None) -> Matched:
    """The blocks of a trace; with ``folding``, those that need no row of their own may share one."""
    matcher = (use or passes()).matcher(len(trace.events), folding)
    others = []
    for batch in trace.events.batches():
        undone = matcher.feed(batch)
        here = np.flatnonzero((batch.kind >= EventKind.MAP) | ((batch.kind == EventKind.UNDO) & ~undone))
        if len(here):
            others.append([getattr(batch, name)[here] for name in COLUMNS])
    heap = matcher.finish()
    del matcher
    columns = zip(*others, strict=True) if others else ((np.empty(0, DTYPES[name]),) for name in COLUMNS)
    events = Events(*(np.concatenate(parts) for parts in columns))
    followed = _rows(events, is_mapping(events.kind) | (events.kind == EventKind.UNDO))
    rows, unmatched = follow(followed, trace.file_maps, trace.header.page_bytes) if len(followed) else ([], 0)
    stats = BlockStats(heap.unmatched_frees, heap.replaced_allocations, unmatched)
    table, brief = _together(heap, rows, followed)
    last = max(last_of(table.begin), last_of(table.end), heap.last_gone)
    return Matched(table, brief, _rows(events, events.kind != EventKind.UNDO), stats, last)


def blocks(trace: Trace, use: Passes | None = None) -> tuple[Blocks, BlockStats]:
    """All blocks by begin, each with a row of its own."""
    matched = match(trace, use=use)
    return matched.blocks, matched.stats


def _rows(events: Events, chosen: npt.NDArray[np.bool_]) -> Events:
    return Events(*(getattr(events, name)[chosen] for name in COLUMNS))


_FEW = 500
"""Pieces to copy in a loop: more take longer than a look at each row."""


def _insert(column: Column, places: list[int], values: list[int]) -> Column:
    """``numpy.insert`` looks at each row of the column; copying what is between a few places does not."""
    added = np.array(values, column.dtype)
    if len(places) > _FEW:
        return np.insert(column, places, added)
    pieces = [column[: places[0]]]
    for at, (place, following) in enumerate(pairwise([*places, len(column)])):
        pieces += (added[at : at + 1], column[place:following])
    return np.concatenate(pieces)


def _together(heap: HeapBlocks, rows: Sequence[Row], events: Events) -> tuple[Blocks, Folded]:
    """Column by column, so that at most one of them is there twice."""
    pieces = [row.piece for row in rows]
    columns: dict[str, list[int]] = {
        "begin": [piece.begin for piece in pieces],
        "end": [row.end for row in rows],
        "address": [piece.start for piece in pieces],
        "bytes": [piece.end - piece.start for piece in pieces],
        "kind": [int(row.kind) for row in rows],
        "scope": [piece.scope for piece in pieces],
        "stack": [piece.stack for piece in pieces],
        "thread": [piece.thread for piece in pieces],
        "file": [piece.file for piece in pieces],
        "function": [MAPPED] * len(rows),
        "folded": [0] * len(rows),
    }
    columns["freed_scope"], columns["freed_thread"] = _unmapped(events, columns["end"])
    held: dict[str, Any] = {column.name: getattr(heap, column.name, None) for column in fields(Blocks)}
    held["kind"] = np.full(len(heap.begin), BlockKind.HEAP, np.uint8)
    held["file"] = np.full(len(heap.begin), -1, np.int32)
    places = np.searchsorted(heap.begin, np.array(columns["begin"], np.uint64))
    brief = heap.brief
    if len(brief) and rows:
        moved = np.arange(len(heap.begin), dtype=np.uint32)
        moved += np.searchsorted(places, moved, "right").astype(np.uint32)
        np.take(moved, brief.row, out=brief.row)
    del heap
    if rows:
        for name, values in columns.items():
            held[name] = _insert(held.pop(name), places.tolist(), values)
    return Blocks(**{column.name: held[column.name] for column in fields(Blocks)}), brief


def _unmapped(events: Events, ends: Sequence[int]) -> tuple[list[int], list[int]]:
    """Scope and thread of the UNMAP at each of the stamps, 0 where it is none."""
    stamps = np.array(ends, np.uint64)
    place = np.searchsorted(events.stamp, stamps).clip(max=max(len(events) - 1, 0))
    if not len(stamps):
        return [], []
    told = (events.stamp[place] == stamps) & (events.kind[place] == EventKind.UNMAP)
    return np.where(told, events.scope[place], 0).tolist(), np.where(told, events.thread[place], 0).tolist()
