"""A trace holds all that its report needs: what the launcher knew comes back from its notes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import etmem
from etmem.api import Profile
from etmem.capture.metadata import CaptureMetadata, decode, encode, with_exit_status
from etmem.model.errors import TraceError
from etmem.model.summary import InputSpec, Issue
from etmem.model.words import IssueCode, Severity
from tests.report import samples

SRC = Path(__file__).parents[2] / "src"
METADATA = CaptureMetadata(
    samples.target(InputSpec("forward", 0, "float32", (1, 2), upper_bound=True), threads=2, backend_options=("B:k=1",)),
    samples.environment(command=("a\x1fb", "caf\udce9"), exit_status=None, memlock_limit_bytes=None),
    ("models/mlp.pte",),
    (Issue(IssueCode.PYTHON_FALLBACK, Severity.WARNING, "m", "h", {"lost": ["a", 1, None]}),),
)


def test_capture_notes_come_back():
    text = encode(METADATA)
    assert text.isascii()
    assert text.isprintable()
    assert decode(text) == METADATA


@pytest.mark.parametrize("damage", [lambda t: t[:-9], lambda t: "[]", lambda t: t.replace('"arch"', '"arc"')])
def test_damaged_notes_are_a_trace_error(damage):
    with pytest.raises(TraceError) as caught:
        decode(damage(encode(METADATA)))
    assert caught.value.hint


def test_the_exit_status_completes_the_environment():
    assert with_exit_status(METADATA, "-9").environment.exit_status == -9
    assert with_exit_status(METADATA, None) == METADATA
    with pytest.raises(TraceError):
        with_exit_status(METADATA, "nine")


def test_a_profile_s_forms():
    profile = Profile(samples.mlp(), Path("out/mlp.etmem"))
    assert repr(profile) == "<Profile mlp.etmem: load 134,341,289 B, inference 67,190,657 B>"
    assert str(profile) == profile.text()
    assert json.loads(profile.to_json())["schema"] == etmem.Summary.__dataclass_fields__["schema"].default
    assert repr(replace(profile, summary=samples.withheld())) == "<Profile mlp.etmem: no peak>"


def test_the_package_s_names():
    assert set(etmem.__all__) <= set(dir(etmem))
    for name in etmem.__all__:
        assert getattr(etmem, name) is not None
    with pytest.raises(AttributeError, match="nothing"):
        etmem.nothing  # noqa: B018


def test_a_report_from_the_trace_is_the_one_that_run_printed(tmp_path):
    # GIVEN a recorded command without ExecuTorch, WHEN only its trace is read, THEN the report is the same.
    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "etmem", *arguments],
            capture_output=True, text=True, timeout=600, check=False, cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(SRC)},
        )  # fmt: skip

    recorded = run("run", "-o", "t.etmem", "--", "sh", "-c", "echo hello; exit 3")
    assert recorded.stdout.startswith("hello\n")
    assert "error no_executorch" in recorded.stdout
    assert recorded.returncode == 4
    read = run("report", "t.etmem")
    assert "hello\n" + read.stdout == recorded.stdout
    assert read.returncode == 4
    summary = etmem.load(tmp_path / "t.etmem").summary
    assert summary.environment.exit_status == 3
    assert summary.environment.command == ("sh", "-c", "echo hello; exit 3")
    assert run("report", "t.etmem", "--json", "-").stdout == etmem.load(tmp_path / "t.etmem").to_json()
