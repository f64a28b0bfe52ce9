"""Every kind of input, state and constant that a program can hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.accuracy.captures import etmem, phases, profile, summarized
from tests.models.registry import model_path

SMALL = ("every_dtype", "structured", "many_operators", "quantized_xnnpack", "quantized_portable")


@pytest.mark.parametrize("name", SMALL)
def test_it_runs_and_every_byte_has_an_owner(name: str) -> None:
    summary = profile(name)
    inferences = list(phases(summary, "inference"))
    assert [phase.iteration for phase in inferences] == [0, 1]
    assert not any(phase.failed for phase in summary.phases)
    allocated = sum(phase.allocated_bytes for phase in summary.phases)
    assert sum(phase.unowned_bytes for phase in summary.phases) <= 0.001 * allocated


def test_every_dtype_is_named() -> None:
    summary = profile("every_dtype")
    assert len({spec.dtype for spec in summary.target.inputs}) == len(summary.target.inputs) == 17


def test_constant_methods_are_listed_and_every_other_one_runs() -> None:
    summary = profile("many_methods")
    assert set(summary.programs[0].constant_methods) == {"get_vocab_size", "get_eos_ids", "get_scale", "use_kv_cache"}
    assert {phase.method for phase in phases(summary, "inference")} == {"grow", "count", "dense"}


def test_one_method_of_several() -> None:
    summary = profile("many_methods", "--method", "dense")
    assert {phase.method for phase in phases(summary, "method_load", "inference")} == {"dense"}


def test_several_shapes_run_one_after_the_other() -> None:
    """GIVEN three shapes of a dynamic input THEN each is run in the same process, in order."""
    shapes = ("1x2", "16x32", "4x8")
    options = [part for shape in shapes for part in ("--shape", f"0={shape}")]
    summary = profile("many_methods", "--method", "grow", *options)
    assert [spec.shape for spec in summary.target.inputs] == [(1, 2), (16, 32), (4, 8)]
    assert len(list(phases(summary, "inference"))) == 6
    assert len(list(phases(summary, "method_load"))) == 1


def test_external_weights() -> None:
    """GIVEN weights in a .ptd WHEN mapped THEN they are constants of ExecuTorch, file-backed."""
    data = model_path("external_data").parent / "_default_external_constant.ptd"
    summary = profile("external_data", "--ptd", str(data))
    assert summary.peaks.steady is not None
    held = [
        part.file_bytes + part.private_bytes
        for owner in summary.peaks.steady.moment.owners
        if owner.owner == "executorch"
        for part in owner.categories
        if part.category == "constants"
    ]
    assert sum(held) >= 128 * 128 * 4


def test_external_weights_left_out(tmp_path: Path) -> None:
    ran = etmem("profile", model_path("external_data"), cwd=tmp_path)
    assert ran.code == 1
    assert "--ptd" in ran.err


def test_bundled_inputs_are_run() -> None:
    summary = summarized("profile", (model_path("bundled"),))
    assert [spec.shape for spec in summary.target.inputs] == [(2, 16), (2, 16)]
    assert len(list(phases(summary, "inference"))) >= 2


def test_inputs_from_a_file(tmp_path: Path) -> None:
    np.savez(tmp_path / "inputs.npz", np.zeros((8, 64), np.float32))
    summary = summarized("profile", (model_path("many_operators"), "--input", tmp_path / "inputs.npz"))
    assert [spec.shape for spec in summary.target.inputs] == [(8, 64)]
    assert not summary.target.inputs[0].upper_bound
