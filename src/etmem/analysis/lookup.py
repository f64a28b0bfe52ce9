"""Which block held an address at a moment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from etmem.trace.tables import I64, U64, Blocks

__all__ = ["I64", "alike", "containing"]

_STAMP_BITS = np.uint64(40)
"""Stamps stay below 2^40: a million events a second for twelve days."""


def containing(blocks: Blocks, addresses: U64, stamps: U64) -> I64:
    """For each (address, stamp), the row of the block that was live then and holds the address, or -1.

    Live blocks do not overlap, so all blocks that ever held one address did so one after the other: the
    right one is the last to have begun by the stamp, if it had not ended.
    """
    found = np.full(len(addresses), -1, np.int64)
    places, place = np.unique(addresses, return_inverse=True)
    if not len(places) or not len(blocks):
        return found
    first = np.searchsorted(places, blocks.address, "left")
    count = np.searchsorted(places, blocks.address + blocks.bytes, "left") - first
    rows = np.repeat(np.arange(len(blocks)), count)
    if not len(rows):
        return found
    # Row r is listed once for each place in it: first[r], first[r] + 1, ...
    within = np.arange(len(rows)) - np.repeat(np.cumsum(count) - count, count)
    held = np.repeat(first, count) + within
    keys = held.astype(np.uint64) << _STAMP_BITS | blocks.begin[rows]
    order = np.argsort(keys, kind="stable")
    position = np.searchsorted(keys[order], place.astype(np.uint64) << _STAMP_BITS | stamps, "right") - 1
    candidate = order[np.maximum(position, 0)]
    row = rows[candidate]
    live = (position >= 0) & (held[candidate] == place) & (blocks.begin[row] <= stamps) & (stamps < blocks.end[row])
    found[live] = row[live]
    return found


def alike(*rows: npt.NDArray[Any]) -> tuple[I64, I64]:
    """The distinct columns of a table of ``rows`` in order, and the place of each column among them.

    What ``numpy.unique`` gives along the columns, which sorts them as bytes: here they are one number each, as far as
    their ranges fit into one, and of neighbours that are alike one is looked at.
    """
    starts = np.flatnonzero(_begins(rows))
    table = np.array([row[starts] for row in rows], np.int64)
    if not len(starts):
        return table, np.zeros(0, np.int64)
    lowest = table.min(axis=1)
    ranges = [int(high) - int(low) + 1 for low, high in zip(lowest, table.max(axis=1), strict=True)]
    if np.prod(ranges, dtype=float) < 2.0**62:
        keys = np.zeros(len(starts), np.int64)
        for row, low, size in zip(table, lowest, ranges, strict=True):
            keys = keys * size + (row - low)
        _, first, place = np.unique(keys, return_index=True, return_inverse=True)
        found = table[:, first]
    else:
        found, place = np.unique(table, axis=1, return_inverse=True)
    return found, np.repeat(place.ravel(), np.diff(np.append(starts, len(rows[0]))))


def _begins(rows: Sequence[npt.NDArray[Any]]) -> npt.NDArray[np.bool_]:
    """Where a column is another than the one before."""
    begins = np.zeros(len(rows[0]), np.bool_)
    begins[:1] = True
    for row in rows:
        begins[1:] |= row[1:] != row[:-1]
    return begins
