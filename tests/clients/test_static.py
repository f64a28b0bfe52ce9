"""A static runtime, a static program: etmem::wrap of native/cmake links the hooks in front of it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import etmem
from etmem.analysis import static_scopes
from etmem.capture import build, diagnose, executorch
from etmem.model.summary import Summary
from etmem.model.words import Category, IssueCode, PhaseKind, Severity
from etmem.trace.tables import DelegateStage, ScopeKind

RUNTIME = Path(__file__).parent / "static_runtime"
CMAKE = build.include_folder().parent / "cmake"
BACKEND = "delegate:KeepingBackend"
KEPT, SCRATCH, PLANNED, TEMP, HANDLE = 300_000, 1_000, 4_096, 128, 16 + 64


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of ``plain``, ``traced`` and ``traced_malloc``, built by CMake as an application would be."""
    folder = tmp_path_factory.mktemp("static")
    found = executorch.find()
    options = (f"-DETMEM_CMAKE={CMAKE}", f"-DEXECUTORCH_INCLUDE={found.include}", "-DCMAKE_BUILD_TYPE=Debug")
    for command in (["cmake", "-S", RUNTIME, "-B", folder, *options], ["cmake", "--build", folder, "-j", "2"]):
        subprocess.run(command, check=True, capture_output=True)
    return folder


def traced(program: Path, folder: Path) -> Summary:
    subprocess.run([program, folder / "trace.etmem", "3"], check=True)
    return etmem.load(folder / "trace.etmem").summary


def at_peak(summary: Summary) -> dict[tuple[str, Category], int]:
    assert summary.peaks.inference is not None
    owners = summary.peaks.inference.moment.owners
    return {(part.owner, row.category): row.private_bytes for part in owners for row in part.categories}


EXECUTORCH = {
    ("executorch", Category.PLANNED_MEMORY): PLANNED,
    ("executorch", Category.METHOD_ALLOCATOR): HANDLE,
    ("executorch", Category.TEMP_ALLOCATOR): TEMP,
}
PHASES = [
    PhaseKind.PROGRAM_LOAD,
    PhaseKind.METHOD_LOAD,
    *(PhaseKind.INFERENCE,) * 3,
    PhaseKind.UNLOAD,
]


def test_without_malloc_executorch_itself_is_counted_and_the_rest_is_said_to_be_missing(
    programs: Path, tmp_path: Path
) -> None:
    summary = traced(programs / "traced", tmp_path)
    assert [phase.kind for phase in summary.phases] == PHASES
    assert at_peak(summary) == EXECUTORCH
    assert [delegate.instance for delegate in summary.delegates] == [0]
    (missing,) = [issue for issue in summary.issues if issue.code is IssueCode.MALLOC_NOT_FOLLOWED]
    assert "KeepingBackend" in missing.message


def test_with_malloc_wrapped_every_byte_is_counted(programs: Path, tmp_path: Path) -> None:
    summary = traced(programs / "traced_malloc", tmp_path)
    assert [phase.kind for phase in summary.phases] == PHASES
    assert at_peak(summary) == {**EXECUTORCH, (BACKEND, Category.METADATA): KEPT + SCRATCH}
    assert [phase.live_end.private_bytes for phase in summary.phases] == [
        0,
        *(PLANNED + HANDLE + KEPT,) * 4,
        HANDLE,
    ]
    (delegate,) = summary.delegates
    assert (delegate.init_peak_bytes, delegate.steady_bytes, delegate.execute_allocations) == (KEPT, KEPT, 3 * 2)
    assert {issue.code for issue in summary.issues} == {IssueCode.NO_DELEGATE_DESCRIPTION}


def run(program: Path, folder: Path) -> Summary:
    command = [sys.executable, "-m", "etmem", "run", "--output", folder / "run.etmem", "--", program, "unused", "3"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 4), done.stderr
    return etmem.load(folder / "run.etmem").summary


def test_a_program_that_knows_nothing_of_etmem_is_told_by_its_symbols(programs: Path, tmp_path: Path) -> None:
    """What static arrays hold is in no allocation; inferences without anything between them are one."""
    summary = run(programs / "plain", tmp_path)
    assert [(phase.kind, phase.allocations) for phase in summary.phases] == [
        (PhaseKind.METHOD_LOAD, 1),
        (PhaseKind.INFERENCE, 3 * 2),
        (PhaseKind.UNLOAD, 0),
    ]
    assert at_peak(summary)[BACKEND, Category.METADATA] == KEPT + SCRATCH
    assert [phase.peak.private_bytes for phase in summary.phases] == [KEPT, KEPT + SCRATCH, KEPT]
    assert [phase.live_start.private_bytes for phase in summary.phases] == [0, KEPT, KEPT]
    assert [phase.live_end.private_bytes for phase in summary.phases] == [KEPT, KEPT, 0]
    (issue,) = [issue for issue in summary.issues if issue.code is IssueCode.EXECUTORCH_STATIC]
    assert (issue.severity, "call stack" in issue.message) == (Severity.WARNING, True)


def test_a_stripped_one_is_not(programs: Path, tmp_path: Path) -> None:
    stripped = tmp_path / "stripped"
    subprocess.run(["strip", "-o", stripped, programs / "plain"], check=True)
    assert not diagnose.named_runtime([str(stripped)])
    assert diagnose.named_runtime(["taskset", str(programs / "plain")])
    summary = run(stripped, tmp_path)
    assert summary.phases == ()
    assert summary.peaks.inference is None


CALLS = {
    "_ZN10executorch7runtime6Method7executeEv": {"phase": ScopeKind.INFERENCE},
    "_ZN10executorch9extension6module6Module19make_planned_memoryERKSt6vectorImSaImEE": {
        "category": Category.PLANNED_MEMORY
    },
}


@pytest.mark.parametrize("name", CALLS)
def test_what_a_function_tells(name: str) -> None:
    assert static_scopes.tell(["malloc_caller", name, "main"], ()) == static_scopes.Told(**CALLS[name])


def test_the_outermost_phase_and_the_innermost_backend_count() -> None:
    load = "_ZNK10executorch7runtime7Program11load_methodEPKcPNS0_13MemoryManagerEPNS0_11EventTracerE"
    init = (
        "_ZNK10executorch8backends7xnnpack14XnnpackBackend4initERNS_7runtime18BackendInitContextE"
        "PNS3_14FreeableBufferENS3_8ArrayRefINS3_11CompileSpecEEE"
    )
    told = static_scopes.tell(["_ZN10executorch7runtime6MethodD1Ev", init, load], ("XnnpackBackend",))
    assert (told.phase, told.backend, told.stage) == (ScopeKind.METHOD_LOAD, "XnnpackBackend", DelegateStage.INIT)
    allocator = "_ZN10executorch9extension21MallocMemoryAllocator8allocateEmm"
    assert static_scopes.tell([allocator, load], ()).category is Category.METHOD_ALLOCATOR
    assert static_scopes.tell(["main"], ()) == static_scopes.NOTHING


def test_the_target_wraps_what_the_header_stands_in_front_of() -> None:
    header = (build.include_folder() / "etmem/wrap.hpp").read_text()
    joined = re.sub(r'"\s*\\?\n\s*"', "", header)
    wrapped = set(re.findall(r'"(_ZNK?[A-Za-z0-9_]+)"', joined))
    listed = set(re.findall(r"^\s+(_ZN\w+)", (CMAKE / "etmem.cmake").read_text(), re.MULTILINE))
    assert wrapped == listed
