"""Sets of bytes as sorted ranges."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from etmem.analysis.lookup import I64


@dataclass(frozen=True)
class Coverage:
    """Disjoint sorted ranges, and how many of their bytes lie below an address."""

    starts: I64
    ends: I64

    @cached_property
    def _whole(self) -> I64:
        """Bytes of the first n ranges, for each n."""
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.ends - self.starts)])

    @property
    def total(self) -> int:
        return int(self._whole[-1])

    def between(self, start: I64, end: I64) -> I64:
        """Covered bytes in each [start, end)."""
        return self._below(end) - self._below(start)

    def _below(self, address: I64) -> I64:
        count = np.searchsorted(self.starts, address, "right")
        last_end = np.concatenate([np.zeros(1, np.int64), self.ends])[count]
        below: I64 = self._whole[count] - np.maximum(last_end - address, 0)
        return below

    def within(self, other: Coverage) -> Coverage:
        """The parts that both cover."""
        return self._parts(other, covered=True)

    def outside(self, other: Coverage) -> Coverage:
        """The parts that only this one covers."""
        return self._parts(other, covered=False)

    def _parts(self, other: Coverage, *, covered: bool) -> Coverage:
        edges = np.sort(np.concatenate([self.starts, self.ends, other.starts, other.ends]))
        starts, ends = edges[:-1], edges[1:]
        kept = (self.between(starts, ends) > 0) & ((other.between(starts, ends) > 0) == covered)
        return Coverage(starts[kept], ends[kept])

    def split(self, at: I64) -> Coverage:
        """The same bytes, with no range across any of the sorted addresses."""
        edges = np.sort(np.concatenate([self.starts, self.ends, at]))
        starts, ends = edges[:-1], edges[1:]
        kept = self.between(starts, ends) > 0
        return Coverage(starts[kept], ends[kept])


@dataclass(frozen=True)
class Remainder:
    """What ``whole`` covers and ``parts`` do not, without making its ranges: there may be millions."""

    whole: Coverage
    parts: Coverage

    def between(self, start: I64, end: I64) -> I64:
        """Bytes in each [start, end)."""
        return self.whole.between(start, end) - (self._taken_below(end) - self._taken_below(start))

    @cached_property
    def _taken(self) -> I64:
        """Bytes of the whole in the first n parts, for each n."""
        return np.concatenate(
            [np.zeros(1, np.int64), np.cumsum(self.whole.between(self.parts.starts, self.parts.ends))]
        )

    def _taken_below(self, address: I64) -> I64:
        count = np.searchsorted(self.parts.starts, address, "right")
        last_end = np.concatenate([np.zeros(1, np.int64), self.parts.ends])[count]
        beyond = self.whole.between(np.minimum(address, last_end), last_end)
        taken: I64 = self._taken[count] - beyond
        return taken


def union(starts: I64, ends: I64) -> Coverage:
    """What any of some ranges covers, in any order."""
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], ends[order]
    reach = np.concatenate([np.zeros(1, np.int64), np.maximum.accumulate(ends)])[: len(starts)]
    starts = np.maximum(starts, reach)
    real = ends > starts
    return Coverage(starts[real], ends[real])
