"""The estimate against what a run counts."""

from __future__ import annotations

from functools import cache

import pytest

from etmem.delegates.estimating import Sureness
from etmem.planning import PlanOptions, plan
from tests.accuracy.captures import profile
from tests.models.registry import FAMILIES, model_path
from tests.plan.comparing import assert_close

CASES = tuple(name.partition(".")[0] for name in FAMILIES["cases"])
REAL = (*(name.partition(".")[0] for name in (*FAMILIES["architectures"], *FAMILIES["odd_shapes"])), "llama")
OPTIONS = {
    "android": (("--preset", "android"), {"preset": "android"}),
    "file": (("--load-mode", "file"), {"loader": "file"}),
    "buffer": (("--load-mode", "buffer"), {"loader": "buffer"}),
    "own workspaces": (
        ("--backend-option", "XnnpackBackend:workspace_sharing_mode=0"),
        {"backend_options": {"workspace_sharing_mode": "0"}},
    ),
}


@cache
def planned(name, option=""):
    return plan(model_path(name), PlanOptions(**(OPTIONS[option][1] if option else {})))


@pytest.mark.parametrize("name", CASES)
def test_the_cases(name):
    """In sum, and category by category: where every line of one is exact, a run counts the same bytes."""
    assert_close(planned(name), profile(name), 0.001)


@pytest.mark.parametrize("name", REAL)
def test_real_architectures(name):
    assert_close(planned(name), profile(name, "--dry"), 0.01)


@pytest.mark.parametrize("option", OPTIONS)
def test_options_that_change_it(option):
    name = "mlp_two_methods" if option == "android" else "convs_three_delegates"
    assert_close(planned(name, option), profile(name, *OPTIONS[option][0]), 0.02)


def test_a_delegate_that_nothing_estimates_is_a_lower_bound(model):
    found = plan(model("unknown_backend"))
    load = found.forecast("load")
    assert load is not None
    assert load.high_bytes is None
    assert load.sure is Sureness.BOUNDED
    assert any("lower bound" in note for note in found.notes)


def test_tiles_follow_the_cpu(model):
    """The figures of one convolution's pointer table on three instruction sets."""
    for cpu, size in (("avx512", 4718952), ("avx2", 4718880), ("cortex-a76", 4718736)):
        steady = plan(model("convs"), PlanOptions(cpu=cpu)).forecast("steady")
        assert steady is not None
        buffers = [line.private_bytes for line in steady.lines if line.category == "operator_buffers"]
        assert buffers == [6 * size]


def test_threads_share_nothing_else(model):
    one, four = (plan(model("convs"), PlanOptions(threads=count)).forecast("steady") for count in (1, 4))
    assert one is not None
    assert four is not None
    assert 0 < four.private_bytes - one.private_bytes < 8192


def test_kinds_of_avx512(model):
    """GIVEN CPUs whose 8-bit kernels no run was held against THEN nothing that depends on them is called exact."""
    name = model("odd_shapes_int8")
    vnni, skx, amx = (
        plan(name, PlanOptions(cpu=cpu)).forecast("steady") for cpu in ("avx512", "avx512skx", "avx512amx")
    )
    assert vnni is not None
    assert skx is not None
    assert amx is not None
    assert amx.private_bytes > vnni.private_bytes == skx.private_bytes
    for found in (skx, amx):
        packed = [line for line in found.lines if line.category == "packed_weights"]
        assert {line.sure for line in packed} == {Sureness.COMPUTED}
        assert all(line.low_bytes < line.private_bytes < line.high_bytes for line in packed)
