"""The timeline at a screen's resolution: never more points than asked for, and every peak in them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etmem.analysis.symbols import Symbolizer
from etmem.analysis.timeline import Timeline
from etmem.model.words import EXECUTORCH
from etmem.report.samples import MOST, OPERATORS, SMALLER, reduced
from etmem.report.told_series import MOST as TOLD
from etmem.report.told_series import told_series
from etmem.trace.tables import EventKind, Events, ScopeKind
from tests.analysis.worlds import World
from tests.report.views import KIB, MIB, ODD, many_counter_values, small, view_of


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=400), st.integers(8, 60), st.sets(st.integers(0, 900)))
def test_every_bin_keeps_its_highest_and_lowest(values, most, edges):
    line = Timeline(np.arange(len(values), dtype=np.uint64) * 3, np.array(values, np.int64))
    kept = reduced(line, sorted(edges), most)
    assert kept == sorted(set(kept))
    shown = [values[index] for index in kept]
    assert max(shown) == max(values)
    assert min(shown) == min(values)
    assert {0, len(values) - 1} <= set(kept)


def spike(events: int, at: int) -> World:
    """Blocks of 16 bytes that come and go in pairs, and one of 64 MiB for the time of a single event."""
    world = World()
    with world.program_load(), world.method_load():
        pass
    with world.inference():
        scope = world.scope_begin(ScopeKind.INSTRUCTION, "native_call_add", 0, 0)
        first = world.stamp + 1
        world.stamp += events
        world.advance(events * 50)
        world.scope_end(scope)
    world.bulk = (scope, first, events, at)
    return world


class Bulk:
    """A world with a million events, which no builder has to make one by one."""

    def __init__(self, world: World) -> None:
        self.world = world

    def trace(self):
        scope, first, count, at = self.world.bulk
        trace = self.world.trace()
        pair = np.arange(count, dtype=np.uint64) // 2
        kind = np.where(np.arange(count) % 2 == 0, int(EventKind.ALLOC), int(EventKind.FREE)).astype(np.uint8)
        size = np.where(pair == at, 64 << 20, 16).astype(np.uint64)
        filled = np.zeros(count, np.uint32)
        return replace(
            trace,
            events=Events(
                np.arange(first, first + count, dtype=np.uint64), kind, np.zeros(count, np.uint8),
                0x10000000 + pair * 64, size, filled + np.uint32(scope), filled, filled + np.uint32(1000),
            ),
        )  # fmt: skip


@pytest.mark.parametrize("at", [0, 77_777, 149_999])
def test_the_peak_survives_among_many_events(at):
    view = view_of(Bulk(spike(300_000, at)))
    found = view.samples
    assert len(found.stamps) <= MOST + 100
    totals = np.sum([series.values for series in found.series], axis=0)
    moment = view.summary.peaks.inference.moment
    assert totals.max() == moment.private_bytes == 64 << 20
    assert found.stamps[int(totals.argmax())] == view.context.peak_stamps["inference"]


def test_every_sample_is_exact():
    view = view_of(small())
    for index, stamp in enumerate(view.samples.stamps):
        moment = view.context.moment(stamp)
        counted = [s for s in view.samples.series if view.context.keys[s.key].counted]
        assert sum(s.values[index] for s in counted if not s.file) == moment.private_bytes
        assert sum(s.values[index] for s in counted if s.file) == moment.file_bytes


def test_many_phases_leave_room_for_bins():
    world = World()
    with world.program_load(), world.method_load():
        pass
    for iteration in range(3000):
        with world.inference(iteration):
            world.alloc(0x10000000, 100 + iteration % 7)
            world.free(0x10000000)
    found = view_of(world).samples
    assert len(found.stamps) <= MOST + 100
    assert max(max(series.values) for series in found.series) == 106


def test_operators_are_the_counted_bytes_cut_another_way(monkeypatch):
    world = small()
    monkeypatch.setattr(Symbolizer, "stack", lambda _self, frames: [world.symbols.get(frame, "") for frame in frames])
    view = view_of(world)
    found = view.samples
    for index, stamp in enumerate(found.stamps):
        moment = view.context.moment(stamp)
        assert sum(s.values[index] for s in found.operators if not s.file) == moment.private_bytes
        assert sum(s.values[index] for s in found.operators if s.file) == moment.file_bytes
    tops = {(s.owner, s.operator, s.category): max(s.values) for s in found.operators}
    assert tops[EXECUTORCH, "aten::add.out", ""] == 512 * KIB
    assert tops[EXECUTORCH, "", "planned_memory"] == 2 * MIB
    assert tops["delegate:XnnpackBackend", "convolution2d_nhwc_f32", ""] == 3 * MIB
    assert tops["delegate:XnnpackBackend", "", "workspace"] == MIB


def test_of_many_operators_the_largest_are_told_apart():
    found = view_of(ODD["many_operators"]()).samples
    mine = {s.operator: max(s.values) for s in found.operators if s.operator}
    assert len(mine) == OPERATORS + 1
    assert set(mine) == {SMALLER, *(f"aten::op_{index}.out" for index in range(2000 - OPERATORS, 2000))}
    assert sum(mine.values()) == sum(100 + index for index in range(2000))


def test_what_is_told_over_time():
    device, allocated, queue = told_series(view_of(ODD["told"]()).context)
    assert (device.kind, device.unit, max(device.values), device.values[-1]) == ("device", "bytes", 40 * MIB, 8 * MIB)
    assert (allocated.name, allocated.values, allocated.unit) == ("gpu.allocated", (40 * MIB, 39 * MIB), "bytes")
    assert (queue.values, queue.unit) == ((3, -2), "number")
    for one in (device, allocated, queue):
        assert list(one.times_ns) == sorted(one.times_ns)
        assert len(one.times_ns) == len(one.values)


def test_a_counters_highest_value_survives():
    (line,) = told_series(view_of(many_counter_values()).context)
    assert len(line.values) <= 2 * TOLD
    assert (max(line.values), min(line.values)) == (1000, 0)


def test_nothing_seen_gives_no_samples():
    assert view_of(ODD["empty"]()).samples.stamps == ()
