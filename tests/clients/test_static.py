"""A static runtime, a static program: etmem::wrap of native/cmake links the hooks in front of it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import etmem
from etmem.capture import build, executorch
from etmem.model.summary import Summary
from etmem.model.words import Category, IssueCode, PhaseKind

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


def test_the_target_wraps_what_the_header_stands_in_front_of() -> None:
    header = (build.include_folder() / "etmem/wrap.hpp").read_text()
    joined = re.sub(r'"\s*\\?\n\s*"', "", header)
    wrapped = set(re.findall(r'"(_ZNK?[A-Za-z0-9_]+)"', joined))
    listed = set(re.findall(r"^\s+(_ZN\w+)", (CMAKE / "etmem.cmake").read_text(), re.MULTILINE))
    assert wrapped == listed
