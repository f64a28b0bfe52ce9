"""What a Python program tells of itself, recorded from inside and from outside; and sources asked on the way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import etmem
from etmem.capture import client
from etmem.model.errors import UsageError
from etmem.model.summary import Summary
from etmem.model.words import IssueCode
from etmem.sources import source
from etmem.trace.reader import read
from tests.accuracy.captures import XNNPACK
from tests.accuracy.captures import etmem as run_etmem
from tests.models.registry import model_path

BODY = """
import sys
import etmem
from executorch.runtime import Runtime
import torch
kept = []
def allocate(size):
    kept.append(bytearray(size))
def work():
    method = Runtime.get().load_program(sys.argv[1]).load_method("forward")
    for turn in range(2):
        with etmem.scope("preprocess"):
            allocate(3_000_000)
            with etmem.scope("resize"):
                bytearray(1_000_000)
        with etmem.tag("packed_weights"):
            allocate(700_000)
        with etmem.tag("weights"):
            allocate(11_000)
        with etmem.scope("run"):
            method.execute([torch.zeros(1, 3, 256, 256)])
"""
ATTACHED = """
class Mine:
    name, what = "mine", "a counter of this test"
    calls = 0
    def read(self):
        from etmem.sources import Reading
        self.calls += 1
        yield Reading("calls", self.calls)
class Broken:
    name, what = "broken", "raises"
    def read(self):
        raise RuntimeError("no such device")
with etmem.trace("run.etmem", sources=(Mine(), Broken()), interval_seconds=3600):
    work()
"""


def script(folder: Path, text: str) -> Path:
    path = folder / "script.py"
    path.write_text(BODY + text)
    return path


@pytest.fixture(scope="module")
def inside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The trace of a program that records itself."""
    folder = tmp_path_factory.mktemp("inside")
    command = [sys.executable, script(folder, ATTACHED), model_path("convs")]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "run.etmem"


PACKAGE = """
from etmem.sources import Reading
class Growing:
    name = "growing"
    def __init__(self, process):
        self.what, self.calls = f"of process {process}", 0
    def read(self):
        self.calls += 1
        return [Reading("calls", self.calls, "number"), Reading("bytes", 4096 * self.calls), Reading("still", 7)]
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Variables for etmem's own process that has a package with a source."""
    folder = tmp_path_factory.mktemp("package")
    (folder / "growing.py").write_text(PACKAGE)
    info = folder / "growing-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: growing\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[etmem.sources]\ngrowing = growing:Growing\n")
    return {"PYTHONPATH": os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))}


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory, package: dict[str, str]) -> Path:
    """The trace of the same program under ``etmem run``, with a source."""
    folder = tmp_path_factory.mktemp("outside")
    program = script(folder, "work()\n")
    arguments = ("--source", "growing", "-o", folder / "run.etmem", "-q", "--", sys.executable, program)
    ran = run_etmem("run", *arguments, model_path("convs"), variables=package)
    assert ran.code == 0, ran.err
    return folder / "run.etmem"


@pytest.mark.parametrize("recorded", ["inside", "outside"])
def test_scopes_and_tags(recorded: str, request: pytest.FixtureRequest) -> None:
    """GIVEN scopes of known sizes THEN each has its bytes, and a tag that is a category files them."""
    summary = etmem.load(request.getfixturevalue(recorded)).summary
    found = {scope.name: scope for scope in summary.named_scopes}
    assert list(found) == ["preprocess", "preprocess/resize", "packed_weights", "weights", "run"]
    assert all(scope.entered == 2 for scope in found.values())
    close = 20_000  # the interpreter's own small blocks
    for name, kept, freed in (
        ("preprocess", 6_000_000, 2_000_000), ("preprocess/resize", 0, 2_000_000), ("weights", 22_000, 0),
    ):  # fmt: skip
        # Under etmem run recording ends when the interpreter has given everything back.
        assert found[name].live_end_bytes == 0 or recorded == "inside"
        assert recorded == "outside" or kept <= found[name].live_end_bytes <= kept + close
        assert kept + freed <= found[name].allocated_bytes <= kept + freed + close
    assert 7_000_000 <= found["preprocess"].peak_bytes <= 7_000_000 + close
    # What the first inference makes is in the scope around it, whoever owns it.
    assert found["run"].peak_bytes > 43 * 2**20
    assert 1_400_000 <= host(summary)["packed_weights"] <= 1_400_000 + close


def host(summary: Summary) -> dict[str, int]:
    (owner,) = [owner for owner in summary.phases[-1].live_end.owners if owner.owner == "host"]
    return {part.category: part.private_bytes for part in owner.categories}


def test_sources_are_asked_at_the_edges_of_phases(inside: Path) -> None:
    """GIVEN an interval longer than the run THEN a source's values are those of the edges, begin and end."""
    trace = read(inside)
    phases = sorted((s for s in trace.scopes.values() if s.kind.is_phase), key=lambda s: s.begin_ns)
    assert len(phases) >= 4
    calls = [(value.time_ns, value.value) for value in trace.counters if value.name == "mine.calls"]
    assert [number for _, number in calls] == list(range(1, len(calls) + 1))
    for before, phase, after in zip((None, *phases), phases, (*phases[1:], None), strict=False):
        begin = before.end_ns if before is not None and before.end_ns is not None else 0
        assert any(begin <= at <= phase.begin_ns for at, _ in calls), phase
        assert any(phase.begin_ns < at <= (phase.end_ns or 0) for at, _ in calls), phase
        assert after is None or after.begin_ns >= (phase.end_ns or 0)
    assert "a counter of this test; asked every 3.6e+06 ms" in (trace.note("source.mine") or "")


def test_what_was_sampled_is_in_summary_and_report(inside: Path, outside: Path) -> None:
    """GIVEN values of sources THEN they are counters with their source's name, of load and of inference."""
    profile = etmem.load(inside)
    rows = {counter.name: counter for counter in profile.summary.counters}
    calls = rows["mine.calls"]
    assert calls.source.startswith("a counter of this test; asked every")
    assert calls.load_maximum is not None
    assert calls.inference_maximum is not None
    assert calls.first == 1 < calls.load_maximum < calls.inference_maximum < calls.last == calls.samples
    text = profile.text(full=True)
    assert "SAMPLED FROM SOURCES" in text
    assert "COUNTERS" not in text
    rows = {row.name: row for row in etmem.load(outside).summary.counters}
    grown = rows["growing.bytes"]
    assert grown.source.startswith("of process ")
    assert grown.inference_maximum is not None
    assert 4096 < grown.inference_maximum <= grown.maximum == 4096 * rows["growing.calls"].last
    assert (rows["growing.still"].load_maximum, rows["growing.still"].inference_maximum) == (7, 7)


def test_a_source_that_fails_is_an_issue_and_ends_nothing(inside: Path) -> None:
    summary = etmem.load(inside).summary
    (issue,) = [issue for issue in summary.issues if issue.code is IssueCode.SOURCE_FAILED]
    assert "broken: RuntimeError: no such device" in issue.message
    assert summary.peaks.inference is not None


def test_asking_sources_changes_no_figure(inside: Path, outside: Path) -> None:
    """GIVEN a source asked in the process, and one asked outside THEN XNNPACK's buffers are the same blocks."""

    def buffers(trace: Path) -> set[tuple[str, int, int]]:
        peak = etmem.load(trace).summary.peaks.inference
        assert peak is not None
        (xnnpack,) = [owner for owner in peak.moment.owners if owner.owner == XNNPACK]
        parts = ((str(part.category), part.private_bytes, part.blocks) for part in xnnpack.categories)
        return {part for part in parts if part[0] != "metadata"}

    assert buffers(inside) == buffers(outside)
    assert len(buffers(inside)) == 3


def test_the_launcher_asks_while_the_program_runs(outside: Path) -> None:
    trace = read(outside)
    values = [value.value for value in trace.counters if value.name == "growing.calls"]
    assert values == list(range(1, len(values) + 1))
    assert [value.value for value in trace.counters if value.name == "growing.still"] == [7]  # only what changes
    times = [value.time_ns for value in trace.counters]
    phases = [scope for scope in trace.scopes.values() if scope.kind.is_phase]
    assert min(times) < min(scope.begin_ns for scope in phases)
    assert max(times) > min(scope.begin_ns for scope in phases)
    assert times == sorted(times)


def test_profile_with_a_source(tmp_path: Path, package: dict[str, str]) -> None:
    data = tmp_path / "run.json"
    options = ("--source", "growing", "-o", tmp_path / "run.etmem", "-q", "--json", data)
    ran = run_etmem("profile", model_path("convs"), *options, variables=package)
    assert ran.code == 0, ran.err
    written = json.loads(data.read_text())
    assert {row["name"] for row in written["counters"]} == {"growing.calls", "growing.bytes", "growing.still"}
    assert written["named_scopes"] == []
    unknown = run_etmem("profile", model_path("convs"), "--source", "nothing", cwd=tmp_path, variables=package)
    assert unknown.code == 2
    assert unknown.err == "etmem: error: there is no source 'nothing'\nhint: there are cgroup, growing\n"


def test_the_control_group_of_this_machine(tmp_path: Path) -> None:
    """GIVEN a group THEN its charge covers what the profiled process holds; without one, an error says what to do."""
    trace = tmp_path / "run.etmem"
    ran = run_etmem("profile", model_path("convs"), "--source", "cgroup", "-o", trace, "-q")
    try:
        source("cgroup", os.getpid())
    except UsageError as error:
        assert (ran.code, ran.err) == (2, f"etmem: error: {error.message}\nhint: {error.hint}\n")  # noqa: PT017
    else:
        assert ran.code == 0, ran.err
        current = {row.name: row for row in etmem.load(trace).summary.counters}["cgroup.memory.current"]
        assert "processes in it together" in current.source
        assert current.inference_maximum is not None
        assert 43 * 2**20 < current.inference_maximum <= current.maximum


def test_without_a_recording_nothing_happens() -> None:
    """GIVEN no agent WHEN scopes are entered THEN that is all."""
    assert client._client._active() is None
    with etmem.scope("preprocess") as scope, etmem.tag("weights"):
        assert scope._id == 0


def test_a_scope_ends_with_an_exception() -> None:
    with pytest.raises(KeyError), etmem.scope("preprocess"):
        raise KeyError
