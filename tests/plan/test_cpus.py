"""The estimate for other CPUs against dry runs on them: phones' cores, SME, and desks without AVX-512."""

from __future__ import annotations

from itertools import product

import pytest

from etmem.planning import PlanOptions, plan
from tests.models.registry import FAMILIES, model_path
from tests.phone.profiles import profiled
from tests.plan.comparing import assert_close

THREADS = 2
EMULATED = ("haswell", "nehalem", "cortex-a53", "cortex-a72", "cortex-a76", "max")
CASES = [name.partition(".")[0] for name in FAMILIES["cases"] if name != "mlp_portable.pte"]
"""The one that is left out has no delegate: nothing in it depends on the CPU."""
ODD = [name.partition(".")[0] for name in FAMILIES["odd_shapes"]]
REAL = [name.partition(".")[0] for name in FAMILIES["architectures"]] + ["llama"]


@pytest.mark.parametrize(("name", "cpu"), [*product(CASES, ["cortex-a76", "max"]), ("convs", "haswell")])
def test_the_cases(name, cpu):
    assert_close(planned(name, cpu), profiled(name, cpu, threads=THREADS), 0.001)


@pytest.mark.parametrize(("name", "cpu"), list(product(ODD, EMULATED)))
def test_operators_that_fit_no_tile(name, cpu):
    """GIVEN odd sizes in floats, int8 and int4 THEN what is packed is rounded up as on that CPU."""
    assert_close(planned(name, cpu), profiled(name, cpu, threads=THREADS), 0.01)


@pytest.mark.parametrize("name", REAL)
def test_real_architectures_on_a_phone_s_core(name):
    assert_close(planned(name, "cortex-a76"), profiled(name, "cortex-a76", threads=THREADS), 0.01)


@pytest.mark.parametrize("name", ["mlp_two_methods", "convs_three_delegates", "bert_int8"])
def test_with_the_android_preset(name):
    found = plan(model_path(name), PlanOptions(cpu="cortex-a76", threads=THREADS, preset="android"))
    assert_close(found, profiled(name, "cortex-a76", threads=THREADS, preset="android"), 0.02)


def planned(name, cpu):
    return plan(model_path(name), PlanOptions(cpu=cpu, threads=THREADS))
