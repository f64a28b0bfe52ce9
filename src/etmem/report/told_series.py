"""What a program told over time: its counters, and what the heaps of devices have out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from etmem.analysis import counters
from etmem.analysis.context import Context
from etmem.analysis.device_memory import device_heaps, heap_timeline
from etmem.analysis.timeline import Timeline
from etmem.model.words import Unit
from etmem.report.samples import reduced, times

MOST = 600
"""Points of one series. What is left out is neither the highest nor the lowest of its stretch."""


@dataclass(frozen=True)
class ToldSeries:
    """A value holds from its time until the next one's."""

    name: str
    kind: str
    """``counter`` or ``device``."""
    unit: Unit
    times_ns: tuple[int, ...]
    """Since the trace's start."""
    values: tuple[int, ...]


def told_series(context: Context, most: int = MOST) -> tuple[ToldSeries, ...]:
    return (*_devices(context, most), *_counters(context, most))


def _devices(context: Context, most: int) -> Iterator[ToldSeries]:
    for heap in device_heaps(context):
        line = heap_timeline(context, heap.id)
        kept = reduced(line, (), most)
        at = times(context, line.stamps[kept])
        yield ToldSeries(heap.name, "device", Unit.BYTES, at, tuple(line.values[kept].tolist()))


def _counters(context: Context, most: int) -> Iterator[ToldSeries]:
    start = context.trace.header.start_monotonic_ns
    for name, values in counters.series(context).items():
        stamps = np.array([value.stamp for value in values], np.uint64)
        kept = reduced(Timeline(stamps, np.array([value.value for value in values], np.int64)), (), most)
        shown = [values[index] for index in kept]
        at = tuple(value.time_ns - start for value in shown)
        yield ToldSeries(name, "counter", counters.unit(values), at, tuple(value.value for value in shown))
