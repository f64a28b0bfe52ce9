"""etmem-runner by itself: loaders, inputs, options, errors."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from etmem.capture.arrays import ArrayFile
from etmem.capture.failures import Exit
from etmem.capture.inputs import default_inputs
from etmem.capture.options import BackendOption, LoadMode
from etmem.capture.plan import Fill, MethodRun, RunnerPlan, ScalarInput, TensorInput
from etmem.program import is_constant_method, read
from etmem.program.model import ValueKind
from tests.runner.runner import Done, read_outputs, run, run_text

CASES = (
    "mlp",
    "mlp_portable",
    "mlp_three_delegates",
    "mlp_two_methods",
    "convs",
    "convs_three_delegates",
    "kv_cache",
)


def plan_of(path: Path, *, iterations: int = 1, outputs: Path | None = None) -> RunnerPlan:
    program = read(path)
    methods = tuple(plan.name for plan in program.plans if not is_constant_method(plan))
    runs = default_inputs(program, methods, (), iterations).runs
    return RunnerPlan(program=path, methods=methods, runs=runs, outputs=outputs)


@pytest.mark.parametrize("name", CASES)
def test_every_case_runs(model, tmp_path, name):
    plan = plan_of(model(name), iterations=2, outputs=tmp_path / "out")
    done = run(plan, tmp_path)
    assert done.status == 0, done.log
    assert done.lines[0] == f"program_load\t{plan.program}"
    assert done.lines[-1] == "done\t0"
    assert [line for line in done.lines if line.startswith("inference")] == [
        f"inference\t{run.method}\t{number}\t{iteration}"
        for number, run in enumerate(plan.runs)
        for iteration in range(2)
    ]
    for _, _, value in read_outputs(tmp_path / "out"):
        assert np.isfinite(value).all()


def test_the_phases_come_in_the_files_order(model, tmp_path):
    done = run(plan_of(model("mlp_two_methods")), tmp_path)
    assert [line for line in done.lines if not line.startswith("program_load")] == [
        "method_load\tdecode",
        "method_load\tprefill",
        "inference\tdecode\t0\t0",
        "inference\tprefill\t1\t0",
        "unload\tdecode",
        "unload\tprefill",
        "done\t0",
    ]


@pytest.mark.parametrize("mode", list(LoadMode))
def test_loaders_give_the_same_outputs(model, tmp_path, mode):
    plan = plan_of(model("convs"), outputs=tmp_path / "out")
    assert run(plan, tmp_path).status == 0
    expected = (tmp_path / "out").read_bytes()
    done = run(replace(plan, load_mode=mode), tmp_path)
    assert done.status == 0, done.log
    assert (tmp_path / "out").read_bytes() == expected


@pytest.mark.parametrize("mode", list(LoadMode))
def test_external_data(model, tmp_path, mode):
    path = model("external_data")
    (data,) = path.parent.glob("*.ptd")
    plan = replace(plan_of(path, outputs=tmp_path / "out"), data=(data,), load_mode=mode)
    done = run(plan, tmp_path)
    assert done.status == 0, done.log
    ((_, _, value),) = read_outputs(tmp_path / "out")
    assert value.shape == (1, 8)
    assert np.isfinite(value).all()


def test_external_data_left_out(model, tmp_path):
    done = run(plan_of(model("external_data")), tmp_path)
    assert done.status in (Exit.PROGRAM_FAILED, Exit.METHOD_FAILED, Exit.EXECUTION_FAILED)
    assert len(done.errors) == 1


def flipped(tmp_path, model, dtypes: dict[int, np.ndarray]) -> dict[int, np.ndarray]:
    """every_dtype's outputs, which are its inputs turned around, for the inputs of these indices."""
    path = model("every_dtype")
    plan = plan_of(path, outputs=tmp_path / "out")
    store = ArrayFile(tmp_path / "arrays")
    inputs = list(plan.runs[0].inputs)
    for index, array in dtypes.items():
        given = inputs[index]
        assert isinstance(given, TensorInput)
        inputs[index] = replace(given, fill=Fill.FILE, path=store.path, offset=store.add(array))
    done = run(replace(plan, runs=(MethodRun("forward", 1, tuple(inputs)),)), tmp_path)
    assert done.status == 0, done.log
    return {index: value for _, index, value in read_outputs(tmp_path / "out")}


def test_every_dtype_from_a_file(model, tmp_path):
    given = {
        0: np.array([1, 2, 3, 255], np.uint8),
        3: np.array([-1, 2, -3, 2**31 - 1], np.int32),
        5: np.array([1.5, -2, 3, 0.25], np.float16),
        7: np.array([math.pi, -1e300, 0, 1], np.float64),
        8: np.array([True, False, False, True]),
        9: np.array([0x3F80, 0x4000, 0xC040, 0], np.uint16),
    }
    outputs = flipped(tmp_path, model, given)
    for index, array in given.items():
        assert np.array_equal(outputs[index], array[::-1]), index


def test_random_floats_and_zero_integers(model, tmp_path):
    outputs = flipped(tmp_path, model, {})
    for index in (5, 6, 7):
        values = outputs[index].astype(np.float64)
        assert ((values >= 0) & (values <= 1)).all()
        assert len(set(values)) == 4
    bfloat16 = (outputs[9].astype(np.uint32) << 16).view(np.float32)
    assert ((bfloat16 >= 0) & (bfloat16 <= 1)).all()
    assert bfloat16.any()
    for index in (0, 1, 2, 3, 4, 8):
        assert not outputs[index].any(), index


def test_the_same_seed_gives_the_same_numbers(model, tmp_path):
    first = flipped(tmp_path, model, {})
    second = flipped(tmp_path, model, {})
    assert all(np.array_equal(first[index], second[index]) for index in first)


def test_scalars_lists_and_none(model, tmp_path):
    path = model("structured")
    plan = plan_of(path, outputs=tmp_path / "out")
    kinds = [value.kind for value in plan.runs[0].inputs if isinstance(value, ScalarInput)]
    assert {ValueKind.INT, ValueKind.DOUBLE, ValueKind.BOOL} <= set(kinds)
    done = run(plan, tmp_path)
    assert done.status == 0, done.log
    shapes = [value.shape for _, _, value in read_outputs(tmp_path / "out")]
    assert sorted(shapes) == [(2, 3), (4, 3)]


def test_a_scalar_that_is_not_the_files_is_refused(model, tmp_path):
    plan = plan_of(model("structured"))
    inputs = tuple(
        replace(value, value=value.value + 1)
        if isinstance(value, ScalarInput) and value.kind is ValueKind.INT
        else value
        for value in plan.runs[0].inputs
    )
    done = run(replace(plan, runs=(MethodRun("forward", 1, inputs),)), tmp_path)
    assert done.status == Exit.INPUT_FAILED
    assert "is refused: InvalidArgument" in done.errors[0]


def test_state_lives_as_long_as_the_method(model, tmp_path):
    program = read(model("many_methods"))
    (run_,) = default_inputs(program, ("count",), (), 5).runs
    plan = RunnerPlan(model("many_methods"), ("count",), (run_,), outputs=tmp_path / "out")
    done = run(plan, tmp_path)
    assert done.status == 0, done.log
    ((_, _, value),) = read_outputs(tmp_path / "out")
    assert value.tolist() == [5]


def test_constant_methods_can_be_run(model, tmp_path):
    methods = ("get_vocab_size", "get_scale", "use_kv_cache")
    runs = tuple(MethodRun(method, 1, ()) for method in methods)
    plan = RunnerPlan(model("many_methods"), methods, runs, outputs=tmp_path / "out")
    done = run(plan, tmp_path)
    assert done.status == 0, done.log
    assert [value for _, _, value in read_outputs(tmp_path / "out")] == ["int 320", "double 0.5", "bool 0"]


def test_several_shapes_in_one_process(model, tmp_path):
    from etmem.capture.options import ShapeOption

    program = read(model("mlp_dynamic"))
    shapes = (ShapeOption(None, 0, (1, 2048)), ShapeOption(None, 0, (16, 2048)))
    runs = default_inputs(program, ("forward",), shapes, 2).runs
    done = run(RunnerPlan(model("mlp_dynamic"), ("forward",), runs, outputs=tmp_path / "out"), tmp_path)
    assert done.status == 0, done.log
    assert [value.shape for _, _, value in read_outputs(tmp_path / "out")] == [(1, 2048), (16, 2048)]


@pytest.mark.parametrize(
    "option",
    [
        BackendOption("XnnpackBackend", "weight_cache_enabled", True),
        BackendOption("XnnpackBackend", "workspace_sharing_mode", 0),
        BackendOption("XnnpackBackend", "workspace_sharing_mode", 1),
        BackendOption("XnnpackBackend", "packed_cache_path", ""),
    ],
    ids=str,
)
def test_backend_options(model, tmp_path, option):
    plan = plan_of(model("convs_three_delegates"), outputs=tmp_path / "out")
    assert run(plan, tmp_path).status == 0
    expected = (tmp_path / "out").read_bytes()
    done = run(replace(plan, options=(option,)), tmp_path)
    assert done.status == 0, done.log
    assert (tmp_path / "out").read_bytes() == expected


def test_a_packed_cache_is_saved_after_the_load(model, tmp_path):
    cache = tmp_path / "packed.bin"
    options = (
        BackendOption("XnnpackBackend", "weight_cache_enabled", True),
        BackendOption("XnnpackBackend", "packed_cache_path", str(cache)),
        BackendOption("XnnpackBackend", "save_weight_cache_on_disk", True),
    )
    done = run(replace(plan_of(model("convs")), options=options), tmp_path)
    assert done.status == 0, done.log
    assert cache.stat().st_size >= 190_000


@pytest.mark.parametrize(
    ("option", "error"),
    [
        (BackendOption("NoSuchBackend", "anything", 1), "NotFound"),
        (BackendOption("XnnpackBackend", "weight_cache_enabled", "yes"), "InvalidArgument"),
        (BackendOption("XnnpackBackend", "workspace_sharing_mode", 7), "InvalidArgument"),
        (BackendOption("XnnpackBackend", "k" * 64, 7), "InvalidArgument"),
    ],
)
def test_refused_options(model, tmp_path, option, error):
    done = run(replace(plan_of(model("convs")), options=(option,)), tmp_path)
    assert done.status == Exit.OPTION_REFUSED
    assert done.errors[0].startswith(f"error\toption\t{error}\t")


def test_threads_and_shared_arenas(model, tmp_path):
    plan = plan_of(model("mlp_two_methods"), outputs=tmp_path / "out")
    assert run(plan, tmp_path).status == 0
    expected = (tmp_path / "out").read_bytes()
    done = run(replace(plan, threads=1, share_arenas=True), tmp_path)
    assert done.status == 0, done.log
    assert "Resetting threadpool to 1 threads." in done.log
    assert (tmp_path / "out").read_bytes() == expected


def test_etdump(model, tmp_path):
    done = run(replace(plan_of(model("convs")), etdump=tmp_path / "run.etdp", debug_bytes=0), tmp_path)
    assert done.status == 0, done.log
    assert (tmp_path / "run.etdp").read_bytes()[8:12] == b"ED00" or (tmp_path / "run.etdp").read_bytes()[4:8] == b"ED00"
    assert not (tmp_path / "run.etdp.debug").exists()


def test_etdump_with_intermediate_outputs(model, tmp_path):
    plan = replace(plan_of(model("structured")), etdump=tmp_path / "run.etdp", debug_bytes=1 << 20)
    done = run(plan, tmp_path)
    assert done.status == 0, done.log
    assert any((tmp_path / "run.etdp.debug").read_bytes())


@pytest.mark.parametrize("name", ["custom_operator", "unknown_backend"])
def test_what_nobody_has(model, tmp_path, name):
    done = run(plan_of(model(name)), tmp_path)
    assert done.status == Exit.METHOD_FAILED
    assert len(done.errors) == 1
    assert {"custom_operator": "etmem_test::triple.out", "unknown_backend": "NoSuchBackend"}[name] in done.log


def test_a_truncated_program(model, tmp_path):
    plan = plan_of(model("mlp_portable"))
    short = tmp_path / "short.pte"
    short.write_bytes(plan.program.read_bytes()[:100_000])
    done = run(replace(plan, program=short), tmp_path)
    assert done.status == Exit.PROGRAM_FAILED
    assert done.errors[0].startswith("error\tprogram_load\t")


@pytest.mark.parametrize("mode", list(LoadMode))
def test_a_missing_program(tmp_path, mode):
    plan = RunnerPlan(tmp_path / "none.pte", ("forward",), (), load_mode=mode)
    done = run(plan, tmp_path)
    assert done.status == Exit.PROGRAM_FAILED
    assert done.errors == (f"error\tprogram_load\tAccessFailed\t{done.errors[0].split(chr(9))[3]}",)


def test_a_wrong_shape(model, tmp_path):
    plan = plan_of(model("convs"))
    wrong = MethodRun("forward", 1, (TensorInput(6, (1, 3, 256, 512), Fill.ZEROS),))
    done = run(replace(plan, runs=(wrong,)), tmp_path)
    assert done.status == Exit.INPUT_FAILED


@pytest.mark.parametrize("inputs", [(), (ScalarInput(ValueKind.NONE, None),) * 2])
def test_a_wrong_number_of_inputs(model, tmp_path, inputs):
    done = run(replace(plan_of(model("convs")), runs=(MethodRun("forward", 1, inputs),)), tmp_path)
    assert done.status == Exit.INPUT_FAILED
    assert f"forward takes 1 inputs, {len(inputs)} given" in done.errors[0]


def test_a_failed_inference_ends_the_run(model, tmp_path):
    done = out_of_range(model, tmp_path, dry=False)
    assert done.status == Exit.EXECUTION_FAILED
    assert len(done.errors) == 1
    assert "unload\tforward" in done.lines


def test_a_dry_run_goes_on_after_a_failure(model, tmp_path):
    done = out_of_range(model, tmp_path, dry=True)
    assert done.status == Exit.DRY_STOPPED
    assert len(done.errors) == 3
    assert done.lines[-2:] == ("unload\tforward", f"done\t{Exit.DRY_STOPPED}")


def out_of_range(model, tmp_path, *, dry: bool) -> Done:
    """kv_cache written at a position that it does not have: the operator refuses it."""
    store = ArrayFile(tmp_path / "arrays")
    plan = plan_of(model("kv_cache"), iterations=3)
    x, position = plan.runs[0].inputs
    assert isinstance(position, TensorInput)
    offset = store.add(np.array([1 << 40]))
    position = replace(position, fill=Fill.FILE, path=store.path, offset=offset)
    return run(replace(plan, runs=(MethodRun("forward", 3, (x, position)),), dry=dry), tmp_path)


def test_a_library_that_cannot_be_opened(model, tmp_path):
    (tmp_path / "text.so").write_text("no library")
    done = run(replace(plan_of(model("convs")), libraries=(tmp_path / "text.so",)), tmp_path)
    assert done.status == Exit.LIBRARY_FAILED
    assert "text.so" in done.errors[0]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "program\tx\n",
        "etmem-plan\t2\n",
        "etmem-plan\t1\nprogram\tx\nloader\tnone\n",
        "etmem-plan\t1\nprogram\tx\nint\t3\n",
        "etmem-plan\t1\nprogram\tx\nrun\tforward\t1\ntensor\t6\t1x-2\tzeros\n",
        "etmem-plan\t1\nprogram\tx\nrun\tforward\t1\ntensor\t6\t1x2\trandom\n",
        "etmem-plan\t1\nprogram\tx\nthreads\tmany\n",
        "etmem-plan\t1\nprogram\tx\netmem-plan\t1\n",
    ],
)
def test_a_plan_that_is_none(tmp_path, text):
    (tmp_path / "plan").write_text(text)
    done = run_text(tmp_path / "plan")
    assert done.status == Exit.BAD_PLAN
    assert done.errors[0].startswith("error\tplan\t")


def test_names_with_tabs_and_percent_signs(model, tmp_path):
    odd = tmp_path / "a\tb%09c\nd.pte"
    odd.write_bytes(model("convs").read_bytes())
    assert run(plan_of(odd), tmp_path).status == 0
