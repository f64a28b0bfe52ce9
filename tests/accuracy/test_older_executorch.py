"""An ExecuTorch with hooks and no native runner: 1.4.1, under Python."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.accuracy.captures import MIB, XNNPACK, blocks, owner_bytes, run_python
from tests.accuracy.cases import CASES, NAMES
from tests.models.registry import cache_directory, one_export_at_a_time

VERSION = "1.4.1"


@pytest.fixture(scope="session")
def older() -> str:
    """A folder with that ExecuTorch alone, for PYTHONPATH; torch and the rest are the environment's."""
    base = cache_directory("cases").parent
    folder = base / f"executorch-{VERSION}"
    with one_export_at_a_time(base):
        if not (folder / "executorch").is_dir():
            arguments = ("--quiet", "--no-deps", "--target", folder, f"executorch=={VERSION}")
            subprocess.run([sys.executable, "-m", "pip", "install", *map(str, arguments)], check=True)
    return str(folder)


@pytest.mark.parametrize("name", NAMES)
def test_blocks(older: str, name: str) -> None:
    case = CASES[name]
    summary = run_python(name, case.inputs, packages=older)
    assert summary.target.executorch.startswith(VERSION)
    large = Counter({key: n for key, n in blocks(summary, "inference").items() if key[2] > MIB})
    assert large == case.blocks("inference", summary.target.isa)


def test_planned_memory(older: str) -> None:
    case = CASES["convs"]
    summary = run_python("convs", case.inputs, packages=older)
    assert summary.peaks.inference is not None
    assert owner_bytes(summary.peaks.inference.moment, XNNPACK) > 40 * MIB
    assert [arena.bytes for arena in summary.arenas if arena.name == "planned[1]"] == [case.facts["planned"]["forward"]]


def test_profile_falls_back_to_python(older: str, tmp_path: Path) -> None:
    """GIVEN no C++ SDK WHEN profiled THEN Python runs it, and an issue names what is lost."""
    from tests.accuracy.captures import summarized
    from tests.models.registry import model_path

    summary = summarized("profile", (model_path("convs"),), {"PYTHONPATH": older})
    assert summary.target.runtime == "python"
    assert "python_fallback" in {issue.code for issue in summary.issues}
