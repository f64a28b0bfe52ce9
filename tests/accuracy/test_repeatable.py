"""The same command twice: the same counts, byte for byte."""

from __future__ import annotations

import sys

import pytest

from tests.accuracy.captures import RUN_MODEL, counts, summarized
from tests.accuracy.cases import CASES
from tests.models.registry import model_path


@pytest.mark.parametrize("name", ["convs_three_delegates", "mlp_two_methods", "kv_cache", "llama"])
def test_native(name: str) -> None:
    first, second = (counts(summarized("profile", (model_path(name + ".pte"),))) for _ in range(2))
    assert first == second


def test_under_python() -> None:
    case = CASES["convs_three_delegates"]
    script = (sys.executable, RUN_MODEL, model_path(case.name), case.inputs, "3")
    first, second = (counts(summarized("run", ("--", *script))) for _ in range(2))
    assert first == second
