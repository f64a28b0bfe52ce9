"""Inputs, outputs, constant methods and bundled inputs."""

from __future__ import annotations

import numpy as np
import pytest

from etmem.program import Dynamism, ValueKind, inputs, is_constant_method, outputs, read, read_bytes
from etmem.program.bundle import unpack
from tests.models.registry import model_path


def test_inputs_of_the_cases():
    program = read(model_path("kv_cache"))
    found = inputs(program, "forward")
    assert [(entry.dtype.name, entry.shape, entry.upper_bound) for entry in found] == [
        ("float32", (1, 1, 1024), False),
        ("int64", (1,), False),
    ]
    assert [entry.dtype.short for entry in found] == ["f32", "i64"]
    assert outputs(program, "forward")[0].nbytes == 1024 * 4


def test_a_dynamic_input_is_at_its_upper_bound():
    (found,) = inputs(read(model_path("mlp_dynamic")), "forward")
    assert found.upper_bound
    assert found.shape == (4096, 2048)
    assert found.dynamism is Dynamism.DYNAMIC_BOUND
    assert found.nbytes == 4096 * 2048 * 4


def test_scalar_inputs(small):
    found = inputs(read(small / "branches.pte"), "forward")
    assert [entry.kind for entry in found] == [ValueKind.TENSOR, ValueKind.TENSOR, ValueKind.DOUBLE]
    assert found[2].default == 2.0
    assert found[1].dtype.name == "bool"


def test_constant_methods(small):
    program = read(small / "dynamic.pte")
    constant = {plan.name for plan in program.plans if is_constant_method(plan)}
    assert constant == {"get_vocab_size", "get_name", "use_kv_cache", "get_eos_ids"}
    assert outputs(program, "get_vocab_size")[0].default == 32000
    assert outputs(program, "get_name")[0].default == "small"
    assert outputs(program, "use_kv_cache")[0].default is True
    assert not any(is_constant_method(plan) for plan in read(model_path("mlp")).plans)


def test_a_bundle_gives_its_program_and_inputs(small):
    bundle = unpack(small / "bundle.bpte")
    program = read_bytes(bundle.program_bytes)
    assert program.methods == ("forward",)
    assert program == read_bytes(bundle.program_bytes)
    assert read(small / "bundle.bpte").plans == program.plans
    (first, second) = bundle.cases["forward"]
    image, bias = first
    expected = np.arange(2 * 3 * 8 * 8, dtype=np.float32).reshape(2, 3, 8, 8)
    np.testing.assert_array_equal(image, expected)
    assert image.flags.owndata
    assert bias.shape == ()
    assert bias.dtype == np.float64
    assert float(bias) == 1.5
    np.testing.assert_array_equal(second[0], expected)
    for entry, value in zip(inputs(program, "forward"), first, strict=True):
        assert entry.shape == value.shape
        assert np.dtype(entry.dtype.numpy) == value.dtype


@pytest.mark.parametrize("name", ["mlp", "convs", "mlp_portable"])
def test_input_shapes_match_what_was_exported(name):
    shape = (1, 3, 256, 256) if name == "convs" else (1, 2048)
    assert [entry.shape for entry in inputs(read(model_path(name)), "forward")] == [shape]
