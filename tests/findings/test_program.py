"""Findings that the file tells, on the reference models' files and traces that hold only what they need."""

from __future__ import annotations

from dataclasses import replace

import pytest

from etmem.analysis.findings_program import dynamic_bounds, graph_breaks, kv_copies, transposed_weights
from etmem.model.summary import InputSpec
from etmem.model.words import Certainty
from etmem.program import read
from tests.analysis.worlds import OPTIONS, TARGET, World
from tests.models.registry import model_path

POSIX_MEMALIGN = 4
BOUND, WORKSPACE = 2 * 4096 * 2048 * 4, 67_108_896


def world_of(program, *, methods=("forward",), workspace: int = 0) -> World:
    """The planned memory of a program, and a workspace in its first inference."""
    world = World()
    world.note("program.1.path", str(program.path))
    with world.program_load():
        pass
    for place, method in enumerate(methods):
        planned = sum(size for _, size in program.plan(method).planned)
        with world.method_load(method):
            world.alloc(0x10_0000_0000 * (place + 1), planned)
            with world.init():
                pass
    with world.inference(method=methods[0]), world.execute():
        if workspace:
            world.packed(0x90_0000_0000, workspace, "xnn_plan_memory", function=POSIX_MEMALIGN)
    return world


def case(told, name: str, rule, **more):
    program = read(model_path(name))
    return rule(told(world_of(program, **more), program))


def test_a_break_that_costs_planned_memory(told):
    (found,) = case(told, "convs_three_delegates", graph_breaks)
    assert (found.bytes, found.saving_bytes) == (16_777_216, 7_602_176)
    assert found.detail["planned_bytes"] == 16_777_280
    assert found.detail["uncut_planned_bytes"] == 9_175_104
    assert found.advice == (
        "aten.cumsum x2 cuts forward into 3 delegates; what crosses a cut lives in planned memory: 16.0 of its "
        "16.0 MiB. Uncut: 8.8, saves 7.25."
    )


def test_the_uncut_figure_is_what_the_uncut_model_plans(told):
    (found,) = case(told, "convs_three_delegates", graph_breaks)
    assert dict(read(model_path("convs")).plans[0].planned) == {1: found.detail["uncut_planned_bytes"]}


def test_a_break_that_costs_nothing_saves_nothing(told):
    (found,) = case(told, "mlp_three_delegates", graph_breaks)
    assert (found.bytes, found.saving_bytes) == (16_384, 0)


@pytest.mark.parametrize("name", ["mlp", "convs", "mlp_portable", "kv_cache"])
def test_models_without_a_break_that_matters(told, name):
    """In kv_cache 4 KiB of 48 MiB cross the cut."""
    assert case(told, name, graph_breaks) == ()


def test_a_cache_and_its_copies(told):
    (found,) = case(told, "kv_cache", kv_copies)
    assert (found.bytes, found.saving_bytes) == (3 * 2**24, 2**24)
    assert found.detail == {
        "method": "forward",
        "buffers": 1,
        "buffer_bytes": 2**24,
        "copies": 2,
        "planned_bytes": 50_335_808,
    }
    assert case(told, "mlp", kv_copies) == ()


def test_a_weight_that_is_transposed_whenever_it_is_used(told):
    (found,) = case(told, "mlp_portable", transposed_weights)
    assert (found.bytes, found.saving_bytes) == (2**24, 2**24)
    assert found.detail["constants"] == 4
    assert "aten.permute_copy" in found.advice
    assert case(told, "mlp", transposed_weights) == ()


def dynamic(told, shape: tuple[int, ...] | None):
    program = read(model_path("mlp_dynamic"))
    specs = () if shape is None else (InputSpec("forward", 0, "float32", shape),)
    options = replace(OPTIONS, target=replace(TARGET, inputs=specs))
    return dynamic_bounds(told(world_of(program, workspace=WORKSPACE), program, options))


def test_a_bound_far_above_the_input(told):
    (found,) = dynamic(told, (1, 2048))
    assert found.bytes == BOUND + WORKSPACE
    assert found.saving_bytes == int((BOUND + WORKSPACE) * (1 - 1 / 4096))
    assert found.certainty is Certainty.ESTIMATED
    assert "0.024 %" in found.advice
    assert found.detail["workspace_bytes"] == WORKSPACE


def test_a_bound_that_is_used(told):
    (found,) = dynamic(told, (4096, 2048))
    assert (found.bytes, found.saving_bytes) == (BOUND + WORKSPACE, None)
    assert found.certainty is Certainty.POSSIBLE


def test_a_bound_without_a_known_input(told):
    (found,) = dynamic(told, None)
    assert (found.saving_bytes, found.certainty) == (None, Certainty.POSSIBLE)
    assert found.detail["used_share"] is None


def test_static_models_have_no_bound(told):
    assert case(told, "mlp_two_methods", dynamic_bounds, methods=("prefill", "decode")) == ()


def test_a_method_that_was_not_loaded_is_not_spoken_of(told):
    program = read(model_path("convs_three_delegates"))
    world = World()
    world.note("program.1.path", str(program.path))
    with world.program_load():
        pass
    assert graph_breaks(told(world, program)) == ()


def test_without_the_file_nothing_is_said(told):
    program = read(model_path("convs_three_delegates"))
    assert graph_breaks(told(world_of(program))) == ()
