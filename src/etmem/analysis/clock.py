"""Stamps to times."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from etmem.analysis.lookup import I64
from etmem.trace.tables import U64, WINDOW_NOTE, Trace


@dataclass(frozen=True)
class Clock:
    """Points of the stamp-to-time line, increasing in both; times count from the trace's start."""

    stamps: U64
    times: I64

    def ns(self, stamp: int) -> int:
        """Between two points, on the straight line between them."""
        return self.several_ns(np.array([stamp], np.uint64))[0]

    def several_ns(self, stamps: U64) -> tuple[int, ...]:
        """``ns`` of each."""
        if not len(self.stamps):
            return (0,) * len(stamps)
        found = np.interp(stamps.astype(np.float64), *self._line)
        return tuple(np.rint(found).astype(np.int64).tolist())

    @cached_property
    def _line(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """A point for each scope's begin and end: to convert them for each look-up would take longer than all else."""
        return self.stamps.astype(np.float64), self.times.astype(np.float64)


def window_begin(trace: Trace) -> int:
    """When a part of a longer recording begins, on the trace's own clock; 0 for a whole one."""
    return trace.number(WINDOW_NOTE) or 0


def clock(trace: Trace) -> Clock:
    """From the chunks' own points, and from all that has both a stamp and a time."""
    points = [(int(stamp), int(time)) for stamp, time in trace.clock]
    for scope in trace.scopes.values():
        points.append((scope.begin_stamp, scope.begin_ns))
        if scope.end_stamp is not None and scope.end_ns is not None:
            points.append((scope.end_stamp, scope.end_ns))
    points += [(sample.stamp, sample.time_ns) for sample in trace.rss]
    points += [(snapshot.stamp, snapshot.time_ns) for snapshot in trace.snapshots]
    points.sort()
    stamps = np.array([stamp for stamp, _ in points], np.uint64)
    times = np.array([time for _, time in points], np.int64) - trace.header.start_monotonic_ns
    # Threads read the clock a little before or after they take their stamp.
    return Clock(stamps, np.maximum.accumulate(times) if len(times) else times)
