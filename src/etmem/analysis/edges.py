"""The stamps at which somebody looks at what is live: of a long trace, blocks that live at none of them are folded."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from etmem.trace.tables import NEVER, U64, Trace

GRID = 1 << 16
"""Bins of a long trace's timelines besides those between two edges: finer than any screen."""


def edges(trace: Trace, *more: int) -> U64:
    """Where any side table says that something happened, sorted, and the stamp before each.

    Scopes told by call stack begin and end at events: between such a stamp and the one before it, the event is alone.
    """
    stamps = np.array([stamp for stamp in (*_stamps(trace), *more) if 0 < stamp < NEVER], np.uint64)
    return np.unique(np.concatenate([stamps, stamps - np.uint64(1)]))


def _stamps(trace: Trace) -> Iterator[int]:
    for scope in trace.scopes.values():
        yield scope.begin_stamp
        yield scope.end_stamp or 0
    for thread in trace.threads:
        yield thread.begin_stamp
        yield thread.end_stamp or 0
    for segment in trace.segments:
        yield segment.stamp
        yield segment.freed_stamp or 0
    tables = (trace.claims, trace.heaps.values(), trace.rss, trace.snapshots, trace.labels, trace.counters)
    for rows in (*tables, trace.modules, trace.own, trace.file_maps):
        for row in rows:
            yield row.stamp


def bins(edges: U64, since: int, until: int) -> U64:
    """The edges of a window, and a grid over it."""
    inside = edges[(edges >= np.uint64(since)) & (edges <= np.uint64(until))]
    grid = np.linspace(since, until, GRID + 1).astype(np.uint64)
    return np.unique(np.concatenate([inside, grid]))
