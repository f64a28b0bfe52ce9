"""Which block held an address at a moment."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from etmem.trace.tables import U64, Blocks

I64 = npt.NDArray[np.int64]

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


def alike(table: I64) -> tuple[I64, I64]:
    """The distinct columns in order, and the place of each column among them.

    What ``numpy.unique(table, axis=1)`` gives, which sorts columns as bytes: here they are one number each, as far as
    their ranges fit into one.
    """
    if not table.shape[1]:
        return table, np.zeros(0, np.int64)
    lowest = table.min(axis=1)
    ranges = [int(high) - int(low) + 1 for low, high in zip(lowest, table.max(axis=1), strict=True)]
    if np.prod(ranges, dtype=float) >= 2.0**62:
        found, place = np.unique(table, axis=1, return_inverse=True)
        return found, place.ravel()
    keys = np.zeros(table.shape[1], np.int64)
    for row, low, size in zip(table, lowest, ranges, strict=True):
        keys = keys * size + (row - low)
    _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    return table[:, first], place.ravel()
