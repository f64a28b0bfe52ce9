"""An application that is built with etmem/module.hpp: traced with no hooks library, and with the same figures."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import etmem
from etmem.capture import build, executorch
from etmem.model.summary import Moment, Summary
from etmem.model.words import MemoryKind
from etmem.trace.reader import read
from tests.accuracy.delegate.building import HERE, compile_with_executorch
from tests.agent.recording import record

SOURCE = Path(__file__).parent / "programs/traced_module.cpp"
ITERATIONS = 3


@pytest.mark.parametrize("compiler", ["g++", "clang++-14"])
@pytest.mark.parametrize(
    "flags", [(), ("-fno-rtti", "-fno-exceptions", "-fvisibility=hidden")], ids=["rtti", "no-rtti"]
)
def test_both_compilers_take_it_with_and_without_rtti(compiler: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    found = executorch.find()
    assert found.include is not None
    portable = found.include / "executorch/runtime/core/portable_type/c10"
    command = [
        compiler,
        "-std=c++17",
        "-O1",
        "-Wall",
        "-Wextra",
        "-Werror",
        *flags,
        f"-I{build.include_folder()}",
        f"-I{HERE}",
    ]
    command += ["-isystem", str(found.include), "-isystem", str(portable)]
    command += ["-DC10_USING_CUSTOM_GENERATED_MACROS", "-DET_EVENT_TRACER_ENABLED"]
    subprocess.run([*command, "-fsyntax-only", SOURCE.with_name("device.cpp")], check=True)


@pytest.fixture(scope="module")
def application(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_with_executorch(SOURCE, tmp_path_factory.mktemp("application") / "traced_module")


def owners(moment: Moment) -> set[tuple[object, ...]]:
    """What ExecuTorch and its delegates hold, to the byte."""
    return {
        (part.owner, part.instance, row.category, row.private_bytes, row.file_bytes, row.blocks)
        for part in moment.owners
        if part.owner not in ("host", "profiler")
        for row in part.categories
    }


def figures(summary: Summary) -> list[tuple[object, ...]]:
    return [
        (phase.kind, phase.method, phase.iteration, phase.allocations, phase.allocated_bytes, *map(owners, moments))
        for phase in summary.phases
        for moments in [(phase.peak, phase.peak_private, phase.live_start, phase.live_end)]
    ]


@pytest.mark.parametrize("name", ["convs", "convs_three_delegates"])
def test_the_same_owners_and_figures_as_profile(
    name: str, application: Path, model: Callable[[str], Path], tmp_path: Path
) -> None:
    path = model(name)
    recording = record([application, path, str(ITERATIONS)], tmp_path, stacks=("XnnpackBackend",))
    assert recording.status == 0
    notes = dict(read(recording.path).notes)
    assert "hooks.path" not in notes
    assert Path(notes["executorch.library"]).name == "libexecutorch.so"
    profiled = etmem.profile(path, iterations=ITERATIONS, output=tmp_path / "profiled.etmem")
    mine, theirs = etmem.load(recording.path).summary, profiled.summary
    assert figures(mine) == figures(theirs)
    assert [(a.name, a.method, a.bytes, a.used_peak_bytes, a.users) for a in mine.arenas] == [
        (a.name, a.method, a.bytes, a.used_peak_bytes, a.users) for a in theirs.arenas
    ]
    assert [d.instance for d in mine.delegates] == [d.instance for d in theirs.delegates]


def test_it_runs_unchanged_where_there_is_no_profiler(application: Path, model: Callable[[str], Path]) -> None:
    subprocess.run([application, model("convs"), "1"], check=True, capture_output=True)


@pytest.mark.parametrize("flags", [(), ("-DETMEM_LINKED_IN",)], ids=["hooks", "linked in"])
def test_what_a_devices_allocator_hands_out_is_the_devices(flags: tuple[str, ...], tmp_path: Path) -> None:
    """What it refuses is not there; its addresses are no memory of the process."""
    program = compile_with_executorch(SOURCE.with_name("device_memory.cpp"), tmp_path / "device_memory", *flags)
    library = executorch.find().runtime
    assert library is not None
    hooks = build.hooks(library) if not flags else None
    recording = record([program], tmp_path, hooks=hooks)
    assert recording.status == 0
    (row,) = etmem.load(recording.path).summary.device_memory
    assert (row.memory, row.owner, row.name) == (MemoryKind.GPU, "executorch", "device_allocator")
    assert (row.peak_bytes, row.live_end_bytes, row.allocations) == (8 << 20, 0, 2)
