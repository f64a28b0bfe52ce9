"""Sets of bytes as sorted ranges."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from etmem.analysis.lookup import I64


@dataclass(frozen=True)
class Coverage:
    """Disjoint sorted ranges, and how many of their bytes lie below an address."""

    starts: I64
    ends: I64

    def between(self, start: I64, end: I64) -> I64:
        """Covered bytes in each [start, end)."""
        return self._below(end) - self._below(start)

    def _below(self, address: I64) -> I64:
        whole = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.ends - self.starts)])
        count = np.searchsorted(self.starts, address, "right")
        last_end = np.concatenate([np.zeros(1, np.int64), self.ends])[count]
        below: I64 = whole[count] - np.maximum(last_end - address, 0)
        return below

    @property
    def total(self) -> int:
        return int((self.ends - self.starts).sum())

    def within(self, other: Coverage) -> Coverage:
        """The parts that both cover."""
        return self._parts(other, covered=True)

    def outside(self, other: Coverage) -> Coverage:
        """The parts that only this one covers."""
        return self._parts(other, covered=False)

    def _parts(self, other: Coverage, *, covered: bool) -> Coverage:
        edges = np.unique(np.concatenate([self.starts, self.ends, other.starts, other.ends]))
        starts, ends = edges[:-1], edges[1:]
        kept = (self.between(starts, ends) > 0) & ((other.between(starts, ends) > 0) == covered)
        return Coverage(starts[kept], ends[kept])


def union(starts: I64, ends: I64) -> Coverage:
    """What any of some ranges covers, in any order."""
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], ends[order]
    reach = np.concatenate([np.zeros(1, np.int64), np.maximum.accumulate(ends)])[: len(starts)]
    starts = np.maximum(starts, reach)
    real = ends > starts
    return Coverage(starts[real], ends[real])
