"""The recorder of etmem/recorder.hpp: 16 KiB of the application's own memory, nothing preloaded, no malloc followed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import etmem
from etmem.model.summary import Summary
from etmem.model.words import Category, IssueCode, MemoryKind, PhaseKind
from etmem.trace.reader import read
from etmem.trace.tables import MisuseKind
from tests.accuracy.delegate.building import compile_with_executorch
from tests.clients.compilers import CLANG, GCC, compile_client

SOURCE = Path(__file__).parent / "programs/device.cpp"
ITERATIONS = 3


@pytest.fixture(scope="module")
def application(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_with_executorch(SOURCE, tmp_path_factory.mktemp("device") / "device", "-DETMEM_MAX_NAMES=4")


def run(application: Path, model: Path, trace: Path, *arguments: str) -> Summary:
    variables = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    subprocess.run(
        [application, model, *arguments[:1], trace, *arguments[1:]], check=True, capture_output=True, env=variables
    )
    return etmem.load(trace).summary


def arenas(summary: Summary) -> list[tuple[object, ...]]:
    """Of planned memory, how much is used at once stands in the program's file, which is not at hand here."""
    return [(a.name, a.method, a.bytes, a.allocations, a.users, a.users and a.used_peak_bytes) for a in summary.arenas]


def codes(summary: Summary) -> set[IssueCode]:
    return {issue.code for issue in summary.issues}


@pytest.mark.parametrize("name", ["convs", "convs_three_delegates"])
def test_what_executorch_itself_takes_is_what_profile_counts(
    name: str, application: Path, model: Callable[[str], Path], tmp_path: Path
) -> None:
    path = model(name)
    mine = run(application, path, tmp_path / "device.etmem", str(ITERATIONS))
    theirs = etmem.profile(path, iterations=ITERATIONS, output=tmp_path / "profiled.etmem", load_mode="file").summary
    assert [(p.kind, p.method, p.iteration) for p in mine.phases] == [
        (p.kind, p.method, p.iteration) for p in theirs.phases
    ]
    assert arenas(mine) == arenas(theirs)
    assert [(d.backend, d.method, d.instance, d.blob_bytes, d.named_data_bytes) for d in mine.delegates] == [
        (d.backend, d.method, d.instance, d.blob_bytes, d.named_data_bytes) for d in theirs.delegates
    ]
    planned = sum(arena.bytes for arena in mine.arenas if arena.name.startswith("planned["))
    assert mine.peaks.inference is not None
    (executorch,) = mine.peaks.inference.moment.owners
    held = {row.category: row.private_bytes for row in executorch.categories}
    assert (executorch.owner, held[Category.PLANNED_MEMORY]) == ("executorch", planned)
    assert held[Category.METHOD_ALLOCATOR] == sum(
        arena.used_peak_bytes or 0 for arena in mine.arenas if arena.name == "method_allocator"
    )
    assert codes(mine) == {IssueCode.MALLOC_NOT_FOLLOWED}


def test_the_device_is_in_the_header_and_the_pieces_make_a_whole_trace(
    application: Path, model: Callable[[str], Path], tmp_path: Path
) -> None:
    run(application, model("convs"), tmp_path / "device.etmem", "30")
    trace = read(tmp_path / "device.etmem")
    assert (trace.header.arch, trace.header.page_bytes, trace.header.pointer_bytes) == ("test-device", 16384, 8)
    assert (trace.header.closed, trace.header.dropped_events, trace.header.truncated) == (True, 0, False)
    assert (tmp_path / "device.etmem").stat().st_size > 16 * 1024
    assert len([s for s in trace.scopes.values() if s.name == "forward" and s.kind.name == "INFERENCE"]) == 30
    assert all(scope.end_stamp is not None for scope in trace.scopes.values())
    assert (trace.clock[:, 1] % 1000 == 0).all()


def test_a_buffer_that_is_full_drops_and_says_how_much(
    application: Path, model: Callable[[str], Path], tmp_path: Path
) -> None:
    summary = run(application, model("convs"), tmp_path / "small.etmem", "40", "small")
    (dropped,) = [issue for issue in summary.issues if issue.code is IssueCode.EVENTS_DROPPED]
    whole = run(application, model("convs"), tmp_path / "whole.etmem", "40")
    assert IssueCode.EVENTS_DROPPED not in codes(whole)
    kept, all_of_it = (len(read(tmp_path / name).scopes) for name in ("small.etmem", "whole.etmem"))
    assert 0 < kept < all_of_it
    assert dropped.detail["events"] >= all_of_it - kept
    assert (tmp_path / "small.etmem").stat().st_size <= 16 * 1024
    assert summary.phases[1].kind is PhaseKind.METHOD_LOAD
    assert summary.phases[1].peak.private_bytes == whole.phases[1].peak.private_bytes


def test_a_link_that_breaks(application: Path, model: Callable[[str], Path], tmp_path: Path) -> None:
    summary = run(application, model("convs"), tmp_path / "slow.etmem", "40", "slow")
    assert {IssueCode.EVENTS_DROPPED, IssueCode.TRACE_TRUNCATED} <= codes(summary)


@pytest.mark.parametrize("compilers", [GCC, CLANG], ids=["gcc", "clang"])
def test_the_recorder_alone(compilers: tuple[str, str], tmp_path: Path) -> None:
    source = SOURCE.with_name("recorder_alone.cpp")
    program = compile_client(source, tmp_path / "alone", "-fno-rtti", "-fno-exceptions", compilers=compilers)
    subprocess.run([program, tmp_path / "alone.etmem"], check=True)
    trace = read(tmp_path / "alone.etmem")
    assert (trace.header.closed, trace.header.dropped_events) == (True, 0)
    assert [misuse.kind for misuse in trace.misuses] == [
        MisuseKind.SCOPE_OPEN,
        MisuseKind.SCOPE_END,
        MisuseKind.HEAP_TWICE,
        MisuseKind.RANGE,
    ]
    assert [(counter.name, counter.value) for counter in trace.counters] == [("depth", 3)]
    summary = etmem.load(tmp_path / "alone.etmem").summary
    (arena,) = summary.arenas
    assert (arena.name, arena.bytes, arena.used_peak_bytes, arena.allocations) == ("pool", 150, 150, 2)
    (device,) = summary.device_memory
    assert (device.memory, device.live_end_bytes) == (MemoryKind.NPU, 4096)
