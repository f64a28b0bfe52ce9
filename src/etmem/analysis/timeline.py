"""Running totals of live bytes over stamps, with exact maxima."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from etmem.trace.native import passes
from etmem.trace.passes import LiveRows
from etmem.trace.tables import I64, U64


@dataclass(frozen=True)
class Window:
    """The stamps that matter; what happens outside of them is never sorted."""

    since: int
    until: int


@dataclass(frozen=True)
class Timeline:
    """``values[i]`` bytes are live from ``stamps[i]`` on, up to the next stamp. The first stamp is 0."""

    stamps: U64
    values: I64

    def at(self, stamp: int) -> int:
        """Live bytes after all that happened at the stamp."""
        return int(self.values[self._position(stamp)])

    def peak(self, begin: int, end: int) -> tuple[int, int]:
        """The first stamp in [begin, end] of the largest value, and the value."""
        first, last = self._position(begin), self._position(end)
        top = first + int(np.argmax(self.values[first : last + 1]))
        return max(int(self.stamps[top]), begin), int(self.values[top])

    def values_at(self, stamps: I64) -> I64:
        """``at`` for many stamps."""
        return self.values[self._positions(stamps)]

    def peaks(self, begins: I64, ends: I64) -> I64:
        """The largest value in each [begin, end]."""
        if not len(begins):
            return np.empty(0, np.int64)
        edges = np.stack([self._positions(begins), self._positions(ends) + 1], axis=1).ravel()
        # reduceat wants every edge to be an index: one more value, which no interval reaches.
        return np.maximum.reduceat(np.append(self.values, 0), edges)[::2]

    def _positions(self, stamps: I64) -> I64:
        return np.searchsorted(self.stamps, stamps.astype(np.uint64), "right") - 1

    def _position(self, stamp: int) -> int:
        return int(np.searchsorted(self.stamps, np.uint64(stamp), "right")) - 1


def timeline(begin: U64, end: U64, weights: I64, window: Window) -> Timeline:
    """Adds ``weights`` at ``begin`` and takes them away at ``end``; right for stamps inside the window."""
    return timeline_of(LiveRows(begin, end, weights, np.ones(len(begin), np.bool_)), window)


def timeline_of(rows: LiveRows, window: Window, bins: U64 | None = None) -> Timeline:
    """With ``bins``, right at each of them, and with the extremes between any two; see ``Passes.timeline``."""
    return Timeline(*passes().timeline(rows, window.since, window.until, bins))


def sums_at(stamps: U64, begin: U64, end: U64, group: npt.NDArray[np.int32], groups: int, weights: I64 | None) -> I64:
    """Live weight (or number) per group at each of some sorted stamps; shape (groups, len(stamps)).

    Exact below 2^53, that is for 9 PB.
    """
    width = len(stamps) + 1
    first = np.searchsorted(stamps, begin, "left")
    after = np.searchsorted(stamps, end, "left")
    # What begins and ends between two of the stamps is most of a long trace, and live at none.
    seen = np.flatnonzero(first < after)
    cells = group[seen].astype(np.int64) * width
    size = groups * width
    kept = weights[seen] if weights is not None else None
    added = np.bincount(cells + first[seen], kept, size)[:size]
    taken = np.bincount(cells + after[seen], kept, size)[:size]
    change = (added - taken).reshape(groups, width)
    return np.rint(np.cumsum(change, axis=1)[:, :-1]).astype(np.int64)
