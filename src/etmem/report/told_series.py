"""What a program told over time: its counters, and what the heaps of devices have out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from etmem.analysis.context import Context
from etmem.analysis.device_memory import heap_timeline
from etmem.analysis.timeline import Timeline
from etmem.model.words import Unit
from etmem.report.samples import reduced, times
from etmem.trace.tables import CounterUnit, CounterValue, MemoryKind

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
    heaps = (heap for heap in context.trace.heaps.values() if heap.memory is not MemoryKind.HOST)
    for heap in sorted(heaps, key=lambda heap: heap.stamp):
        line = heap_timeline(context, heap.id)
        kept = reduced(line, (), most)
        at = times(context, line.stamps[kept])
        yield ToldSeries(heap.name, "device", Unit.BYTES, at, tuple(line.values[kept].tolist()))


def _counters(context: Context, most: int) -> Iterator[ToldSeries]:
    series: dict[str, list[CounterValue]] = defaultdict(list)
    for value in context.trace.counters:
        series[value.name].append(value)
    start = context.trace.header.start_monotonic_ns
    for name, values in series.items():
        stamps = np.array([value.stamp for value in values], np.uint64)
        kept = reduced(Timeline(stamps, np.array([value.value for value in values], np.int64)), (), most)
        shown = [values[index] for index in kept]
        unit = Unit.BYTES if values[0].unit is CounterUnit.BYTES else Unit.NUMBER
        at = tuple(value.time_ns - start for value in shown)
        yield ToldSeries(name, "counter", unit, at, tuple(value.value for value in shown))
