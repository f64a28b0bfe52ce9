"""The example of an application that records itself: it builds as its page says, and its trace is read on the host."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import etmem
from etmem.model.words import Category, IssueCode, PhaseKind
from tests.accuracy.captures import XNNPACK, category_bytes
from tests.accuracy.captures import etmem as run_etmem
from tests.models.registry import model_path

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/device"


def test_the_application_records_itself(tmp_path: Path) -> None:
    build, trace = tmp_path / "build", tmp_path / "device.etmem"
    for command in (
        ["cmake", "-S", EXAMPLE, "-B", build, f"-DPython_EXECUTABLE={sys.executable}"],
        ["cmake", "--build", build],
        [build / "app", model_path("convs"), trace],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    found = etmem.load(trace).summary
    assert [phase.kind for phase in found.phases] == [
        PhaseKind.PROGRAM_LOAD, PhaseKind.METHOD_LOAD, PhaseKind.INFERENCE, PhaseKind.INFERENCE, PhaseKind.UNLOAD,
    ]  # fmt: skip
    assert found.target.arch == "my-board"
    assert found.peaks.inference is not None
    (executorch,) = found.peaks.inference.moment.owners
    assert {part.category: part.private_bytes for part in executorch.categories}[Category.PLANNED_MEMORY] == 9_175_104
    assert [(one.backend, one.instance) for one in found.delegates] == [("XnnpackBackend", 0)]
    assert {issue.code for issue in found.issues} == {IssueCode.MALLOC_NOT_FOLLOWED}
    # Under an agent the same program leaves recording to it, and malloc's blocks are there as well.
    whole = tmp_path / "whole.etmem"
    ran = run_etmem("run", "--output", whole, "-q", "--", build / "app", model_path("convs"), tmp_path / "unused")
    assert ran.code == 0, ran.err
    peak = etmem.load(whole).summary.peaks.inference
    assert peak is not None
    assert category_bytes(peak.moment, XNNPACK, "operator_buffers") == 28_313_712
    assert category_bytes(peak.moment, "executorch", "planned_memory") == 9_175_104
