"""The agent's walk of the stack, at every malloc of a program, beside libgcc's."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from etmem.capture import build, executorch, plan
from etmem.capture.job import openvino_library, prepare
from etmem.capture.options import ProfileOptions
from etmem.trace.tables import EventKind
from tests.agent.recording import PROGRAMS, compile_program, record
from tests.models.registry import model_path

STACKS = PROGRAMS / "stacks"
AGENT = PROGRAMS.parents[1] / "agent"
AARCH64 = "aarch64-linux-gnu-"
SYSROOT = "/usr/aarch64-linux-gnu"


@dataclass(frozen=True)
class Compared:
    walks: int
    by_rows: int
    """Those that needed nothing of libgcc."""
    different: int
    out: str


def compile_comparison(folder: Path, cross: str = "") -> Path:
    output = folder / f"{cross}compare.so"
    sources = [STACKS / "compare.cpp", *(AGENT / f"{name}.cpp" for name in ("call_stack", "cfi", "arena"))]
    flags = ("-std=c++17", "-O2", "-fPIC", "-shared", "-fno-exceptions", "-fno-rtti", "-fvisibility=hidden")
    link = ("-static-libgcc", "-Wl,--exclude-libs,ALL")
    subprocess.run([f"{cross}g++", *flags, f"-I{AGENT}", *sources, "-o", output, *link], check=True)
    return output


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_comparison(tmp_path_factory.mktemp("comparison"))


def compare(comparison: Path, folder: Path, command: list[str | Path], **variables: str) -> Compared:
    found = folder / "found"
    environment = {**os.environ, **variables, "COMPARE_STACKS": str(found), "LD_PRELOAD": str(comparison)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    walks, by_rows, different = map(int, found.read_text().split())
    assert different == 0, done.stderr
    return Compared(walks, by_rows, different, done.stdout)


def shapes(folder: Path, optimised: str, cross: str = "") -> Path:
    output = folder / f"{cross}shapes{optimised}"
    source = STACKS / "shapes.cpp"
    subprocess.run([f"{cross}g++", "-std=c++17", optimised, "-o", output, source, "-lpthread", "-ldl"], check=True)
    return output


@pytest.mark.parametrize("optimised", ["-O0", "-O2"])
def test_stacks_of_many_shapes(optimised: str, comparison: Path, tmp_path: Path) -> None:
    """GIVEN recursion, aligned frames, exceptions, signals, callbacks, threads THEN only signals need libgcc."""
    found = compare(comparison, tmp_path, [shapes(tmp_path, optimised)])
    assert found.walks > 6000
    assert 6 <= found.walks - found.by_rows < 20


def test_stacks_on_aarch64(tmp_path: Path) -> None:
    comparison = compile_comparison(tmp_path, AARCH64)
    program = shapes(tmp_path, "-O2", AARCH64)
    found = tmp_path / "found"
    guest = f"LD_PRELOAD={comparison},COMPARE_STACKS={found}"
    subprocess.run(["qemu-aarch64", "-L", SYSROOT, "-E", guest, program], check=True)
    walks, by_rows, different = map(int, found.read_text().split())
    assert different == 0
    assert walks > 6000
    assert walks - by_rows < 20


def test_another_library_at_the_same_address(comparison: Path, tmp_path: Path) -> None:
    """GIVEN two libraries whose frames differ, one after the other in one place THEN no row outlives its library."""
    libraries = []
    for room in (1024, 4096):
        libraries.append(tmp_path / f"frame{room}.so")
        flags = ("-O1", "-fomit-frame-pointer", "-shared", "-fPIC", f"-DROOM={room}")
        subprocess.run(["gcc", *flags, STACKS / "frame.c", "-o", libraries[-1]], check=True)
    program = compile_program(STACKS / "reopened.c", tmp_path)
    found = compare(comparison, tmp_path, [program, *libraries])
    assert int(found.out) > 0
    assert found.by_rows == found.walks


def test_an_interpreter(comparison: Path, tmp_path: Path) -> None:
    found = compare(comparison, tmp_path, [sys.executable, "-c", "import decimal, json, ctypes, numpy"])
    assert found.by_rows == found.walks > 1000


@pytest.mark.parametrize(("name", "walks"), [("convs", 200), ("openvino_cnn.pte", 50_000)])
def test_a_model(name: str, walks: int, comparison: Path, tmp_path: Path) -> None:
    options = ProfileOptions(program=model_path(name), iterations=3)
    text = tmp_path / "plan"
    text.write_bytes(os.fsencode(plan.encode(prepare(options, tmp_path).plan)))
    command = [build.runner(executorch.find()), text]
    found = compare(comparison, tmp_path, command, OPENVINO_LIB_PATH=str(openvino_library()))
    assert found.by_rows == found.walks > walks


def test_more_stacks_than_are_kept_is_said(tmp_path: Path) -> None:
    program = compile_program(STACKS / "many.c", tmp_path, f"-I{PROGRAMS.parents[1] / 'include'}")
    trace = record([program], tmp_path, all_stacks=True).trace
    ours = (trace.events.kind == EventKind.ALLOC) & (trace.events.size == 100) & (trace.events.scope != 0)
    assert ours.sum() == 1 << 16
    assert len(trace.stacks) == (trace.events.stack[ours] != 0).sum() == 49_152
    assert trace.note("issue.call_stacks_full")
