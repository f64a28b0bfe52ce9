"""What a program tells by the C ABI: its heaps, its devices' memory, labels, counters; and what it tells wrongly."""

from __future__ import annotations

from dataclasses import replace

import pytest

from etmem.analysis.named_scopes import LOADERS_OWN
from etmem.analysis.summarize import summarize
from etmem.model.words import Category, IssueCode, MemoryKind, Unit
from etmem.report.text import render
from etmem.trace import tables
from etmem.trace.tables import CounterUnit, CounterValue, MisuseKind, ScopeKind
from tests.analysis.worlds import OPTIONS, XNN, XNNPACK, World, accounted, filed, owner, summary


def test_a_heap_without_an_owner_leaves_its_block_with_whose_it_is() -> None:
    world = World()
    with world.method_load(), world.init(1):
        heap = world.heap("pool", "", "workspace")
        world.alloc(0x1000, 100)
        world.heap_alloc(heap, 0x1010, 10)
        world.alloc(0x2000, 100)
    found = accounted(world)
    assert filed(found, 0x1000) == (XNN, f"forward/{XNNPACK}[1]", Category.WORKSPACE)
    assert filed(found, 0x2000) == (XNN, f"forward/{XNNPACK}[1]", Category.METADATA)


def test_memory_that_only_its_heap_knows_is_counted_and_its_tag_says_what_it_is() -> None:
    world = World()
    with world.method_load(), world.init():
        heap = world.heap("arena", XNN, "workspace")
        world.heap_alloc(heap, 0x5000_0000, 700)
        with world.scope(ScopeKind.TAG, "packed_weights"):
            world.heap_alloc(heap, 0x5000_1000, 300)
        world.heap_free(heap, 0x5000_0000)
    found = summary(world)
    (phase,) = found.phases
    assert (phase.peak.private_bytes, phase.live_end.private_bytes) == (1000, 300)
    held = owner(phase.peak, XNN, f"forward/{XNNPACK}[0]")
    assert {part.category: part.private_bytes for part in held.categories} == {
        Category.WORKSPACE: 700,
        Category.PACKED_WEIGHTS: 300,
    }


def test_a_pools_use_by_what_it_is_for() -> None:
    world = World()
    with world.method_load(), world.init():
        heap = world.heap("pool", XNN, "workspace")
        world.alloc(0x10000, 4096)
        with world.scope(ScopeKind.TAG, "weights of layer 1", category="packed_weights"):
            world.heap_alloc(heap, 0x10000, 1000)
        for _ in range(3):
            world.heap_alloc(heap, 0x10800, 500)
            world.heap_free(heap, 0x10800)
    (arena,) = summary(world).arenas
    assert (arena.bytes, arena.used_peak_bytes, arena.allocations) == (2500, 1500, 4)
    label = f"forward/{XNNPACK}[0]"
    assert {(u.instance, u.category, u.bytes, u.used_peak_bytes) for u in arena.users} == {
        (label, Category.PACKED_WEIGHTS, 1000, 1000),
        (label, Category.WORKSPACE, 1500, 500),
    }


def gpu() -> World:
    world = World()
    with world.method_load(), world.init():
        heap = world.heap("frames", "delegate:Gpu", "workspace", memory=tables.MemoryKind.GPU)
        world.alloc(0x1000, 64)
        with world.scope(ScopeKind.TAG, "packed_weights"):
            world.heap_alloc(heap, 0x1000, 1 << 20)  # an address that the process has too
        world.heap_alloc(heap, 0x2000, 1 << 30)
        world.heap_free(heap, 0x2000)
    for iteration in range(2):
        with world.inference(iteration):
            world.heap_alloc(heap, 0x3000, 3 << 20)
            world.heap_free(heap, 0x3000)
    return world


def test_memory_of_a_device_is_in_no_total_and_in_its_own_table() -> None:
    found = summary(gpu())
    (row,) = found.device_memory
    assert (row.memory, row.name, row.owner, row.category) == (
        MemoryKind.GPU, "frames", "delegate:Gpu", Category.WORKSPACE,
    )  # fmt: skip
    assert (row.load_peak_bytes, row.inference_peak_bytes, row.steady_bytes) == (
        (1 << 30) + (1 << 20),
        4 << 20,
        1 << 20,
    )
    assert (row.peak_bytes, row.live_end_bytes, row.allocations) == ((1 << 30) + (1 << 20), 1 << 20, 4)
    assert {u.category: u.used_peak_bytes for u in row.users} == {
        Category.PACKED_WEIGHTS: 1 << 20,
        Category.WORKSPACE: 1 << 30,
    }
    assert found.arenas == ()
    assert found.peaks.load is not None
    assert found.peaks.load.moment.private_bytes == 64
    assert filed(accounted(gpu()), 0x1000)[2] is Category.METADATA
    assert not [issue for issue in found.issues if issue.code is IssueCode.API_MISUSE]


def test_devices_stand_in_the_text() -> None:
    page = render(summary(gpu()), width=100, full=True)
    assert any(line.startswith("beside: GPU, Gpu frames") for line in page.splitlines())
    (line,) = [line for line in page.splitlines() if line.startswith("GPU ")]
    assert line.split() == ["GPU", "Gpu", "frames", "1025", "4.0", "1.0", "1025", "1.0", "4"]
    assert "frames: workspace 1024, packed weights 1.0" in page


def test_values_of_a_source_are_those_of_their_time_and_say_whose_they_are() -> None:
    """GIVEN samples that the launcher added at the end THEN their times decide, not where they stand."""
    world = World()
    with world.program_load() as load:
        pass
    with world.inference() as inference:
        pass
    world.note("source.cgroup", "control group /x; asked every 10 ms")
    trace = world.trace()
    last = 10**9
    taken = (
        (trace.scopes[inference].end_ns, 70), (trace.scopes[load].begin_ns, 50), (trace.scopes[load].begin_ns - 1, 60)
    )  # fmt: skip
    values = tuple(CounterValue(last, at, "cgroup.memory", CounterUnit.BYTES, value, 0) for at, value in taken)
    found = summarize(replace(trace, counters=values), OPTIONS).counters
    (counter,) = found
    assert (counter.first, counter.last, counter.samples) == (60, 70, 3)
    # 60 held when loading began.
    assert (counter.load_maximum, counter.inference_maximum) == (60, 70)
    assert counter.source == "control group /x; asked every 10 ms"


def test_counters() -> None:
    world = World()
    world.counter("depth", 9)
    with world.method_load():
        world.counter("driver", 100, CounterUnit.BYTES)
        world.counter("driver", 300, CounterUnit.BYTES)
    world.counter("driver", 200, CounterUnit.BYTES)
    with world.inference():
        world.counter("depth", -4)
    depth, driver = summary(world).counters
    assert (depth.unit, depth.samples, depth.first, depth.last, depth.minimum, depth.maximum) == (
        Unit.NUMBER, 2, 9, -4, -4, 9,
    )  # fmt: skip
    assert (depth.load_maximum, depth.inference_maximum) == (9, 9)
    assert (driver.unit, driver.load_maximum, driver.inference_maximum) == (Unit.BYTES, 300, 200)
    page = render(summary(world), width=100, full=True)
    assert "driver         3  100 B  300 B    300 B         200 B  200 B" in page


def test_labels_name_blocks_and_change_no_owner() -> None:
    world = World()
    with world.method_load(), world.init():
        world.alloc(0x1000, 500)
        world.alloc(0x2000, 500)
        world.label(0x1010, 100, "lookup table")
        world.alloc(0x3000, 200)
        world.label(0x3000, 200, "lookup table")
        world.free(0x3000)
    found = summary(world)
    (label,) = found.labels
    assert (label.name, label.owner, label.category) == ("lookup table", XNN, Category.METADATA)
    assert (label.regions, label.peak_bytes) == (2, 300)
    blocks = {(b.label, b.requested_bytes, b.count) for b in found.largest_blocks if b.at == "load"}
    assert blocks == {("lookup table", 500, 1), ("", 500, 1), ("lookup table", 200, 1)}
    assert "metadata: lookup table" in render(found, width=100, full=True)


def misuse(world: World) -> list[str]:
    with world.method_load():
        world.alloc(0x1000, 8)
    return [issue.message for issue in summarize(world.trace(), OPTIONS).issues if issue.code is IssueCode.API_MISUSE]


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (MisuseKind.SCOPE_END, "scope work was ended twice, or on a thread that did not begin it: the end is left out"),
        (MisuseKind.SCOPE_OPEN, "scope work was still open when the one around it ended: it ended there"),
    ],
)
def test_scopes_that_the_agent_could_not_end(kind: MisuseKind, said: str) -> None:
    world = World()
    with world.scope(ScopeKind.TAG, "work") as scope:
        pass
    world.misuse(kind, scope=scope)
    assert misuse(world) == [said]


def test_what_happens_often_is_said_once() -> None:
    world = World()
    for _ in range(3):
        world.misuse(MisuseKind.HEAP_TWICE, "pool")
    assert misuse(world) == ["heap pool is registered twice: both count as one (3 times)"]


def test_a_scope_that_never_ends() -> None:
    world = World()
    world.scope_begin(ScopeKind.TAG, "work")
    assert misuse(world) == ["scope work was never ended"]


def test_the_agents_own_scope_is_no_mistake_of_the_programs() -> None:
    world = World()
    world.scope_begin(ScopeKind.TAG, LOADERS_OWN)
    assert misuse(world) == []


def test_frees_of_what_was_never_reported_and_reports_of_what_is_out() -> None:
    world = World()
    heap = world.heap("pool", "host", "other")
    world.heap_free(heap, 0x10)
    world.heap_alloc(heap, 0x20, 8)
    world.heap_alloc(heap, 0x20, 8)
    world.heap_free(heap, 0x20)
    world.heap_free(heap, 0x20)
    world.heap_alloc(heap, 0x30, 8)
    world.heap_reset(heap)
    world.heap_alloc(heap, 0x30, 8)
    assert misuse(world) == [
        "heap pool took back what it never handed out (2 times)",
        "heap pool handed out an address that it had not taken back",
    ]


def test_frees_of_what_is_older_than_the_recording_are_no_mistake() -> None:
    world = World()
    world.snapshot("attach")
    world.heap_free(world.heap("pool", "host", "other"), 0x10)
    assert misuse(world) == []


def test_categories_that_there_are_not() -> None:
    world = World()
    world.heap("pool", "host", "wieghts")
    with world.scope(ScopeKind.TAG, "work", category="activatoins"):
        pass
    assert misuse(world) == [
        "scope work names the category activatoins, which there is not",
        "heap pool names the category wieghts, which there is not",
    ]


def test_without_a_phase_the_blocks_are_there_for_what_was_told() -> None:
    world = World()
    heap = world.heap("pool", "delegate:Mine", "workspace")
    world.alloc(0x1000, 4096)
    world.label(0x1000, 4096, "the pool")
    world.heap_alloc(heap, 0x1000, 100)
    world.heap_free(heap, 0x1000)
    found = summary(world)
    assert [(label.owner, label.category, label.peak_bytes) for label in found.labels] == [
        ("delegate:Mine", Category.WORKSPACE, 4096)
    ]


def test_a_device_that_goes_on_when_nothing_else_happens() -> None:
    world = World()
    heap = world.heap("frames", "host", "other", memory=tables.MemoryKind.NPU)
    world.heap_alloc(heap, 0x10, 500)
    world.heap_alloc(heap, 0x20, 70)
    world.heap_free(heap, 0x10)
    (row,) = summary(world).device_memory
    assert (row.peak_bytes, row.live_end_bytes, row.load_peak_bytes, row.steady_bytes) == (570, 70, None, None)
