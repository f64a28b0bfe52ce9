"""Instructions: what each allocates, frees and has live, by hand and on every test model."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etmem.analysis.instructions import calls, instructions, reasons
from etmem.analysis.timeline import Window, timeline
from etmem.api import analyze_trace
from etmem.model.words import NoInstruction, PhaseKind
from etmem.trace.tables import ScopeKind
from tests.accuracy.captures import etmem
from tests.analysis.worlds import XNNPACK, World, accounted, summary

MODELS = ("mlp", "mlp_portable", "mlp_three_delegates", "mlp_dynamic", "mlp_two_methods", "convs",
          "convs_three_delegates", "kv_cache", "quantized_portable", "every_dtype", "many_operators",
          "many_methods", "structured", "llama")  # fmt: skip


def run(world: World) -> None:
    """Two instructions, twice: the first keeps 100 and frees what was there before; the second comes and goes."""
    with world.program_load(), world.method_load():
        world.alloc(0x1000, 10)
    for iteration in (0, 1):
        with world.inference(iteration):
            world.alloc(0x9000 + iteration, 1)
            with world.scope(ScopeKind.INSTRUCTION, "OPERATOR_CALL", 0, 0), \
                    world.scope(ScopeKind.INSTRUCTION, "native_call_add.out", 0, 0):  # fmt: skip
                world.alloc(0x2000 + 0x100 * iteration, 100)
                if not iteration:
                    world.free(0x1000)
            with world.scope(ScopeKind.INSTRUCTION, "OPERATOR_CALL", 0, 1):
                world.alloc(0x3000, 70)
                world.free(0x3000)


def test_each_instruction() -> None:
    world = World()
    run(world)
    found = {(row.at, row.instruction, row.reason): row for row in summary(world).instructions}
    assert len(found) == 6
    first = found["first", 0, None]
    assert (first.operator, first.chain, first.inferences) == ("add.out", 0, 1)
    assert (first.live_before_bytes, first.peak_bytes, first.live_after_bytes) == (11, 111, 101)
    assert (first.allocated_bytes, first.allocations, first.freed_bytes) == (100, 1, 10)
    second = found["first", 1, None]
    assert (second.live_before_bytes, second.peak_bytes, second.live_after_bytes) == (101, 171, 101)
    assert (second.allocated_bytes, second.freed_bytes) == (70, 70)
    later = found["later", 0, None]
    assert (later.live_before_bytes, later.live_after_bytes, later.freed_bytes) == (102, 202, 0)
    between = found["first", None, NoInstruction.BETWEEN_INSTRUCTIONS]
    assert (between.allocated_bytes, between.allocations, between.instruction) == (1, 1, None)


def test_later_inferences_are_one_row() -> None:
    world = World()
    with world.program_load(), world.method_load():
        pass
    for iteration in range(4):
        with world.inference(iteration), world.scope(ScopeKind.INSTRUCTION, "OPERATOR_CALL", 0, 0):
            world.alloc(0x1000 * (iteration + 1), 5)
    rows = summary(world).instructions
    assert [(row.at, row.inferences, row.allocated_bytes, row.live_after_bytes) for row in rows] == [
        ("first", 1, 5, 5), ("later", 3, 15, 20),
    ]  # fmt: skip


def test_a_runtime_without_the_event_tracer_tells_no_instructions() -> None:
    world = World()
    with world.program_load(), world.method_load():
        pass
    with world.inference(0):
        world.alloc(0x1000, 5)
    (row,) = summary(world).instructions
    assert (row.reason, row.allocated_bytes) == (NoInstruction.NO_EVENT_TRACER, 5)


def test_temp_allocator_use_is_reset_after_each_instruction() -> None:
    world = World()
    with world.program_load(), world.method_load():
        temp = world.heap("temp_allocator", "executorch", "temp_allocator")
        world.alloc(0x10000, 1000)
    with world.inference(0):
        for index, sizes in enumerate(((100, 50), (20,))):
            with world.scope(ScopeKind.INSTRUCTION, "OPERATOR_CALL", 0, index):
                place = 0x10000
                for size in sizes:
                    world.heap_alloc(temp, place, size)
                    place += size
            world.heap_reset(temp)
    found = [(row.temp_bytes, row.temp_peak_bytes) for row in summary(world).instructions if row.reason is None]
    assert found == [(150, 150), (20, 20)]


def test_a_delegate_call_names_its_instance() -> None:
    world = World()
    with world.program_load(), world.method_load(), world.init(0):
        world.alloc(0x1000, 8)
    with world.inference(0), world.execute(0):
        world.alloc(0x2000, 4)
    (row,) = summary(world).instructions
    assert (row.operator, row.instance, row.allocated_bytes) == (XNNPACK, "forward/XnnpackBackend[0]", 4)


@given(st.lists(st.tuples(st.integers(1, 60), st.integers(1, 40), st.integers(1, 9)), max_size=30),
       st.lists(st.tuples(st.integers(0, 100), st.integers(0, 30)), min_size=1, max_size=10))  # fmt: skip
def test_peaks_of_many_intervals_are_those_of_each(blocks, intervals) -> None:
    begin = np.array([b for b, _, _ in blocks], np.uint64)
    end = np.array([b + n for b, n, _ in blocks], np.uint64)
    line = timeline(begin, end, np.array([w for _, _, w in blocks], np.int64), Window(0, 200))
    begins = np.array([b for b, _ in intervals], np.int64)
    ends = np.array([b + n for b, n in intervals], np.int64)
    assert line.peaks(begins, ends).tolist() == [
        line.peak(int(b), int(e))[1] for b, e in zip(begins, ends, strict=True)
    ]
    assert line.values_at(begins).tolist() == [line.at(int(b)) for b in begins]


@pytest.mark.parametrize("name", MODELS)
def test_sums_are_the_phases_totals_and_every_event_has_a_place(name, model, tmp_path) -> None:
    trace = tmp_path / "t.etmem"
    ran = etmem("profile", model(name), "-o", trace, "-q")
    assert trace.is_file(), ran.err
    found, context = analyze_trace(trace)
    assert found.instructions
    totals, sums = Counter(), Counter()
    for phase in found.phases:
        if phase.kind is PhaseKind.INFERENCE:
            totals[phase.program, phase.method, "bytes"] += phase.allocated_bytes
            totals[phase.program, phase.method, "blocks"] += phase.allocations
    for row in found.instructions:
        sums[row.program, row.method, "bytes"] += row.allocated_bytes
        sums[row.program, row.method, "blocks"] += row.allocations
    assert sums == totals
    for row in found.instructions:
        if row.at == "first" and row.reason is None:
            assert row.live_after_bytes - row.live_before_bytes == row.allocated_bytes - row.freed_bytes, row
            assert row.peak_bytes >= max(row.live_before_bytes, row.live_after_bytes)
            assert row.operator
            assert row.planned_live_bytes is not None
    ran_calls = calls(context)
    in_phase = np.flatnonzero(context.who.phase > 0)
    names, reason = reasons(ran_calls, in_phase)
    without = np.array([name is None for name in names])[reason]
    assert ((ran_calls.of_rows(in_phase) >= 0) == without).all()
    assert NoInstruction.NO_EVENT_TRACER not in names


def test_instructions_and_their_order_are_the_files(model, tmp_path) -> None:
    trace = tmp_path / "t.etmem"
    etmem("profile", model("convs_three_delegates"), "-o", trace, "-q")
    found, _ = analyze_trace(trace)
    first = [row for row in found.instructions if row.at == "first" and row.reason is None]
    assert [(row.instruction, row.operator) for row in first] == [
        (0, XNNPACK), (1, "aten::cumsum.out"), (2, XNNPACK), (3, "aten::cumsum.out"), (4, XNNPACK),
        (5, "aten::mean.out"),
    ]  # fmt: skip
    assert max(row.planned_live_bytes for row in first) == 16_777_216
    parts = [part for part in found.peak_parts if part.at == "inference"]
    assert [part.instruction for part in parts] == [0, 4, 2]
    assert sum(part.running for part in parts) == 1
    held = sum(row.bytes for row in found.delegate_operators if row.operator == "convolution2d_nhwc_f32")
    assert held >= 6 * 4_718_592


def test_no_inference_no_rows() -> None:
    world = World()
    with world.program_load():
        world.alloc(0x1000, 5)
    assert instructions(accounted(world)) == ()


def test_planned_bytes_against_those_used_at_the_shapes_that_ran(model, tmp_path) -> None:
    """Rows of 8 and 32 floats, bound at 1,024 and run with 5 and then 8."""
    trace = tmp_path / "t.etmem"
    ran = etmem("profile", model("recorded_rows"), "--shape", "0=5x8", "--shape", "0=8x8", "-o", trace, "-q")
    assert ran.code == 0, ran.err
    found, _ = analyze_trace(trace)
    planned = {(row.writer, row.shape): (row.planned_bytes, row.used_bytes) for row in found.planned_tensors}
    assert planned["input", (1024, 8)] == (1024 * 8 * 4, 8 * 8 * 4)
    assert planned["aten::addmm.out", (1024, 32)] == (1024 * 32 * 4, 8 * 32 * 4)
    assert planned["aten::cumsum.out", (1024, 32)] == (1024 * 32 * 4, 8 * 32 * 4)
    assert planned["aten::addmm.out", (1024, 4)] == (1024 * 4 * 4, 8 * 4 * 4)
    static = [row for row in found.planned_tensors if row.writer == "aten::permute_copy.out"]
    assert static
    assert all(row.used_bytes == row.planned_bytes for row in static)
    (arena,) = [row for row in found.arenas if row.name == "planned[1]"]
    assert arena.used_peak_bytes is not None
    assert arena.resident_bytes is not None
    assert 0 < arena.resident_bytes <= arena.bytes
    assert arena.used_peak_bytes <= arena.bytes
