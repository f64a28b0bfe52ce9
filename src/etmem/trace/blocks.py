"""From events to memory blocks: every physical allocation once, with its begin and its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import pairwise

import numpy as np

from etmem.trace.events import COLUMNS
from etmem.trace.mappings import Row, follow, is_mapping
from etmem.trace.native import passes
from etmem.trace.passes import Column, HeapBlocks, Passes
from etmem.trace.tables import BlockKind, Blocks, EventKind, Events, Trace


@dataclass(frozen=True)
class BlockStats:
    """What did not fit together."""

    unmatched_frees: int
    """Frees of blocks that were never seen: allocated before recording began, or by a route that is not hooked."""
    replaced_allocations: int
    """Allocations at an address that was still live: its free was not seen, and the old block ends there."""
    unmatched_undos: int


def blocks(trace: Trace, use: Passes | None = None) -> tuple[Blocks, BlockStats]:
    """All blocks by begin: heap blocks, and mappings as ``mappings.follow`` describes them."""
    matcher = (use or passes()).matcher(len(trace.events))
    others = []
    for batch in trace.events.batches():
        undone = matcher.feed(batch)
        here = np.flatnonzero(is_mapping(batch.kind) | ((batch.kind == EventKind.UNDO) & ~undone))
        if len(here):
            others.append([getattr(batch, name)[here] for name in COLUMNS])
    heap = matcher.finish()
    del matcher
    rows: list[Row] = []
    unmatched = 0
    if others:
        events = Events(*(np.concatenate(parts) for parts in zip(*others, strict=True)))
        rows, unmatched = follow(events, trace.file_maps, trace.header.page_bytes)
    stats = BlockStats(heap.unmatched_frees, heap.replaced_allocations, unmatched)
    return _together(heap, rows), stats


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


def _together(heap: HeapBlocks, rows: Sequence[Row]) -> Blocks:
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
    }
    held = {column.name: getattr(heap, column.name) for column in fields(HeapBlocks)}
    held["kind"] = np.full(len(heap.begin), BlockKind.HEAP, np.uint8)
    held["file"] = np.full(len(heap.begin), -1, np.int32)
    places = np.searchsorted(heap.begin, np.array(columns["begin"], np.uint64))
    del heap
    if rows:
        for name, values in columns.items():
            held[name] = _insert(held.pop(name), places.tolist(), values)
    return Blocks(**{column.name: held[column.name] for column in fields(Blocks)})
