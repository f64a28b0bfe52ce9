"""Small C programs of native/tests, compiled once and run under the agent."""

from __future__ import annotations

import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from etmem.capture import build
from etmem.capture.launch import Launch, run
from etmem.trace.reader import read
from etmem.trace.tables import EventKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from etmem.trace.tables import Trace

PROGRAMS = Path(__file__).resolve().parents[2] / "native/tests/programs"


@dataclass(frozen=True)
class Recording:
    status: int
    trace: Trace
    path: Path


def compile_program(source: Path, folder: Path, *flags: str) -> Path:
    """The executable of one source."""
    output = folder / source.stem
    compiler = "g++" if source.suffix == ".cpp" else "gcc"
    # -O0: an optimiser may drop a malloc and free that it sees through
    command = [compiler, "-O0", "-g", "-Wall", "-Wextra", "-o", output, source, *flags, "-lpthread", "-ldl"]
    subprocess.run(command, check=True)
    return output


def compile_library(source: Path, output: Path) -> Path:
    subprocess.run(["gcc", "-O0", "-shared", "-fPIC", "-o", output, source], check=True)
    return output


def record(command: Sequence[str | Path], folder: Path, **options: object) -> Recording:
    """Run a command under the agent and read its trace."""
    path = folder / "run.etmem"
    launch = Launch(command=tuple(str(part) for part in command), agent=build.agent(), trace=path, **options)  # type: ignore[arg-type]
    status = run(launch)
    return Recording(status, read(path), path)


def allocations(trace: Trace) -> Counter[int]:
    """How many blocks of each size were allocated with malloc's family."""
    chosen = trace.events.kind == EventKind.ALLOC
    return Counter(trace.events.size[chosen].tolist())
