"""Running etmem-runner alone, without the agent, and reading what it returned."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from etmem.capture import build, executorch
from etmem.capture.plan import RunnerPlan, encode
from etmem.program import DTYPES


@dataclass(frozen=True)
class Done:
    status: int
    lines: tuple[str, ...]
    log: str

    @property
    def errors(self) -> tuple[str, ...]:
        return tuple(line for line in self.lines if line.startswith("error\t"))


def run(plan: RunnerPlan, folder: Path, **environment: str) -> Done:
    text = folder / "plan"
    text.write_text(encode(plan))
    return run_text(text, **environment)


def run_text(text: Path, **environment: str) -> Done:
    runner = build.runner(executorch.find())
    reader, writer = os.pipe()
    with os.fdopen(reader) as lines:
        process = subprocess.Popen(
            [runner, text, str(writer)],
            pass_fds=(writer,),
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | environment,
        )
        os.close(writer)
        _, log = process.communicate(timeout=120)
        return Done(process.returncode, tuple(lines.read().splitlines()), log)


def read_outputs(path: Path) -> list[tuple[str, int, npt.NDArray[np.generic] | str]]:
    """(method, index, value) of each output in a runner's output file."""
    data = path.read_bytes()
    found: list[tuple[str, int, npt.NDArray[np.generic] | str]] = []
    at = 0
    while at < len(data):
        end = data.index(b"\n", at)
        method, index, kind, *fields = data[at:end].decode().split("\t")
        at = end + 1
        if kind != "tensor":
            found.append((method, int(index), f"{kind} {fields[0]}".strip()))
            continue
        dtype, sizes, count = DTYPES[int(fields[0])], fields[1], int(fields[2])
        shape = tuple(int(size) for size in sizes.split("x")) if sizes != "-" else ()
        found.append((method, int(index), np.frombuffer(data[at : at + count], dtype.numpy).reshape(shape)))
        at += count
    return found
