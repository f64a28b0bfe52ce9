"""An ExecuTorch with hooks and no native runner: 1.4.1, under Python."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

from etmem.model.words import PhaseKind
from tests.accuracy.captures import MIB, PROGRAMS, XNNPACK, blocks, owner_bytes, phases, run_python, summarized
from tests.accuracy.cases import CASES, NAMES
from tests.accuracy.versions import packages
from tests.models.registry import model_path

VERSION = "1.4.1"


@pytest.fixture(scope="session")
def older() -> str:
    """A folder with that ExecuTorch alone, for PYTHONPATH; torch and the rest are the environment's."""
    return str(packages(VERSION))


@pytest.mark.parametrize("name", NAMES)
def test_blocks(older: str, name: str) -> None:
    case = CASES[name]
    summary = run_python(name, case.inputs, packages=older)
    assert summary.target.executorch.startswith(VERSION)
    large = Counter({key: n for key, n in blocks(summary, "inference").items() if key[2] > MIB})
    assert large == case.blocks("inference", summary.target.isa, VERSION)


def test_planned_memory(older: str) -> None:
    case = CASES["convs"]
    summary = run_python("convs", case.inputs, packages=older)
    assert summary.peaks.inference is not None
    assert owner_bytes(summary.peaks.inference.moment, XNNPACK) > 40 * MIB
    assert [arena.bytes for arena in summary.arenas if arena.name == "planned[1]"] == [case.facts["planned"]["forward"]]


def test_two_installations_in_one_process(older: str) -> None:
    """GIVEN the wheel's ExecuTorch and an older one WHEN both run a model THEN each has its own program's figures."""
    library = next(Path(older).glob("executorch/extension/pybindings/_portable_lib*.so"))
    script = (sys.executable, PROGRAMS / "two_installations.py", model_path("convs"), library)
    summary = summarized("run", ("--", *script))
    assert [program.program for program in summary.programs] == [1, 2]
    assert [phase.program for phase in phases(summary, PhaseKind.METHOD_LOAD)] == [1, 2]
    one, other = (delegate.live_after_init_bytes for delegate in summary.delegates)
    assert one == pytest.approx(other, rel=0.01)
    operators = Counter({key: n for key, n in blocks(summary, "inference").items() if key[0] == "operator_buffers"})
    case = CASES["convs"].blocks("inference", summary.target.isa)
    assert operators == Counter({key: 2 * n for key, n in case.items() if key[0] == "operator_buffers"})
    assert not summary.issues


def test_profile_falls_back_to_python(older: str, tmp_path: Path) -> None:
    """GIVEN no C++ SDK WHEN profiled THEN Python runs it, and an issue names what is lost."""
    summary = summarized("profile", (model_path("convs"),), {"PYTHONPATH": older})
    assert summary.target.runtime == "python"
    assert "python_fallback" in {issue.code for issue in summary.issues}
