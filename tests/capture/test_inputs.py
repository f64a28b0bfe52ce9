"""Default inputs, ``--shape`` and ``.npz``: what is run, and what is refused in which words."""

from __future__ import annotations

import numpy as np
import pytest

from etmem.capture.arrays import ArrayFile, read_npz
from etmem.capture.inputs import default_inputs, given_inputs
from etmem.capture.options import ShapeOption
from etmem.capture.plan import Fill, ScalarInput, TensorInput
from etmem.model.errors import InputError, UsageError
from etmem.program import read


def shapes(inputs):
    return [[value.shape for value in run.inputs if isinstance(value, TensorInput)] for run in inputs.runs]


def test_floats_are_random_and_integers_zero(model):
    inputs = default_inputs(read(model("kv_cache")), ("forward",), (), 2)
    x, position = inputs.runs[0].inputs
    assert (x.fill, x.shape, position.fill, position.shape) == (Fill.RANDOM, (1, 1, 1024), Fill.ZEROS, (1,))
    assert x.seed != 0


def test_a_dynamic_dimension_is_at_its_upper_bound(model):
    inputs = default_inputs(read(model("mlp_dynamic")), ("forward",), (), 2)
    assert shapes(inputs) == [[(4096, 2048)]]
    assert [(spec.shape, spec.upper_bound) for spec in inputs.specs] == [((4096, 2048), True)]


def test_a_chosen_shape_is_no_upper_bound(model):
    inputs = default_inputs(read(model("mlp_dynamic")), ("forward",), (ShapeOption(None, 0, (3, 2048)),), 2)
    assert [(spec.shape, spec.upper_bound) for spec in inputs.specs] == [((3, 2048), False)]


def test_several_shapes_are_several_runs(model):
    options = [ShapeOption("forward", 0, (n, 2048)) for n in (1, 7, 4096)]
    inputs = default_inputs(read(model("mlp_dynamic")), ("forward",), options, 5)
    assert shapes(inputs) == [[(1, 2048)], [(7, 2048)], [(4096, 2048)]]
    assert {run.iterations for run in inputs.runs} == {5}


def test_each_input_has_numbers_of_its_own(model):
    inputs = default_inputs(read(model("mlp_two_methods")), ("decode", "prefill"), (), 1)
    assert len({value.seed for run in inputs.runs for value in run.inputs}) == 2


def test_scalars_are_those_of_the_file(model):
    inputs = default_inputs(read(model("structured")), ("forward",), (), 1)
    values = [value.value for value in inputs.runs[0].inputs if isinstance(value, ScalarInput)]
    assert values[:3] == [3, 0.5, True]


@pytest.mark.parametrize(
    ("name", "option", "message"),
    [
        ("mlp_dynamic", ShapeOption(None, 0, (4097, 2048)), "at most 4096x2048, not 4097x2048"),
        ("mlp_dynamic", ShapeOption(None, 0, (2048,)), r"has 2 dimensions \(4096x2048\), not 1 \(2048\)"),
        ("mlp_dynamic", ShapeOption(None, 1, (2048,)), "forward has no input 1"),
        ("mlp_dynamic", ShapeOption("backward", 0, (2048,)), "names the method 'backward', which is not run"),
        ("convs", ShapeOption(None, 0, (1, 3, 8, 8)), "has the fixed shape 1x3x256x256, not 1x3x8x8"),
        ("structured", ShapeOption(None, 4, (1,)), "is no tensor"),
    ],
)
def test_a_shape_that_does_not_fit(model, name, option, message):
    with pytest.raises(UsageError, match=message):
        default_inputs(read(model(name)), ("forward",), (option,), 1)


def test_shapes_in_different_numbers(model):
    options = [ShapeOption(None, 0, (2, 3))] * 2 + [ShapeOption(None, 1, (2, 3))] * 3
    with pytest.raises(UsageError, match="input 0 of forward has 2 shapes, another input 3"):
        default_inputs(read(model("structured")), ("forward",), options, 1)


def given(model, tmp_path, name, methods, **arrays):
    np.savez(tmp_path / "in.npz", **arrays)
    store = ArrayFile(tmp_path / "raw")
    return given_inputs(read(model(name)), methods, read_npz(tmp_path / "in.npz"), 1, store)


@pytest.mark.parametrize(
    "names", [("0", "1"), ("arr_0", "arr_1"), ("input_0", "input1"), ("forward:0", "forward:1"), ("x", "at")]
)
def test_arrays_are_found_by_number_or_order(model, tmp_path, names):
    x, position = np.ones((1, 1, 1024), np.float32), np.array([7])
    inputs = given(model, tmp_path, "kv_cache", ("forward",), **dict(zip(names, (x, position), strict=True)))
    raw = (tmp_path / "raw").read_bytes()
    first, second = inputs.runs[0].inputs
    assert np.frombuffer(raw, np.float32, 1024, first.offset).tolist() == [1] * 1024
    assert np.frombuffer(raw, np.int64, 1, second.offset).tolist() == [7]
    assert [(spec.dtype, spec.shape) for spec in inputs.specs] == [("float32", (1, 1, 1024)), ("int64", (1,))]


def test_numbers_and_not_the_order_decide(model, tmp_path):
    arrays = {"1": np.array([7]), "0": np.ones((1, 1, 1024), np.float32)}
    inputs = given(model, tmp_path, "kv_cache", ("forward",), **arrays)
    assert [value.dtype for value in inputs.runs[0].inputs] == [6, 4]


def test_a_method_without_arrays_runs_on_defaults(model, tmp_path):
    arrays = {"decode:0": np.ones((1, 2048), np.float32)}
    inputs = given(model, tmp_path, "mlp_two_methods", ("decode", "prefill"), **arrays)
    assert [(run.method, run.inputs[0].fill) for run in inputs.runs] == [("decode", "file"), ("prefill", "random")]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"0": np.ones((1, 1, 1024)), "1": np.array([7])}, "is float32, in.npz gives float64"),
        ({"0": np.ones((1, 1, 1024), np.float32)}, "in.npz has no value for input 1 of forward"),
        ({"0": np.ones((1, 1, 1023), np.float32), "1": np.array([7])}, "has the fixed shape 1x1x1024, not 1x1x1023"),
        (
            {"0": np.ones((1, 1, 1024), np.float32), "1": np.array([7]), "2": np.array(1)},
            "has 3 arrays, forward takes 2",
        ),
        ({"0": np.array(1), "arr_0": np.array(1)}, "in.npz has two arrays for input 0"),
        ({"other:0": np.array(1)}, "has inputs for other, which is not run"),
    ],
)
def test_arrays_that_do_not_fit(model, tmp_path, arrays, message):
    with pytest.raises(UsageError, match=message):
        given(model, tmp_path, "kv_cache", ("forward",), **arrays)


def test_an_npz_for_one_of_two_methods(model, tmp_path):
    with pytest.raises(UsageError, match="does not say which of 2 methods it is for"):
        given(model, tmp_path, "mlp_two_methods", ("decode", "prefill"), **{"0": np.ones((1, 2048), np.float32)})


@pytest.mark.parametrize("content", [b"", b"text", b"PK\x03\x04broken"])
def test_a_file_that_is_no_npz(tmp_path, content):
    (tmp_path / "in.npz").write_bytes(content)
    with pytest.raises(InputError, match=r"in.npz (is not an|cannot be read as) .npz"):
        read_npz(tmp_path / "in.npz")


def test_an_npz_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        read_npz(tmp_path / "in.npz")


def test_a_npy_is_no_npz(tmp_path):
    np.save(tmp_path / "in.npy", np.ones(3))
    with pytest.raises(InputError, match=r"in.npy is not an .npz"):
        read_npz(tmp_path / "in.npy")
