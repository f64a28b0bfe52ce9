"""Heap profiles of a real run: gperftools' heap profiler on etmem-runner, in the format that Go's pprof writes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from etmem.capture import build, executorch, plan
from etmem.capture.job import prepare
from etmem.capture.options import ProfileOptions

PROFILER = "libtcmalloc.so.4"


def libraries() -> tuple[Path, ...]:
    """The files with the symbols of a run: ExecuTorch's, whose exported names remain, and the runner."""
    found = executorch.find()
    assert found.libraries is not None
    names = ("libexecutorch.so", "libexecutorch_backend_xnnpack.so")
    return (*(found.libraries / name for name in names), build.runner(found))


def record(model: Path, folder: Path) -> Path:
    """Of a run of etmem-runner."""
    job = prepare(ProfileOptions(program=model), folder)
    text = folder / "plan"
    text.write_text(plan.encode(job.plan))
    return record_program((build.runner(executorch.find()), text, "2"), folder)


def record_program(command: Sequence[object], folder: Path) -> Path:
    """The dump with the most in use: the profiler writes one whenever 64 KiB more are."""
    variables = {
        "LD_PRELOAD": PROFILER,
        "HEAPPROFILE": str(folder / "heap"),
        "HEAP_PROFILE_INUSE_INTERVAL": str(64 << 10),
        "HEAP_PROFILE_ALLOCATION_INTERVAL": str(1 << 40),
    }
    arguments = [str(part) for part in command]
    done = subprocess.run(arguments, env={**os.environ, **variables}, capture_output=True, text=True, check=True)
    dumps = sorted(folder.glob("heap.*.heap"), key=_in_use)
    assert dumps, done.stderr
    return dumps[-1]


def _in_use(dump: Path) -> int:
    """``heap profile:   133: 55267578 [  ...``"""
    return int(dump.read_text().split("\n", 1)[0].split(":")[2].split("[")[0])


def convert(dump: Path, output: Path, *options: str, program: Path | None = None) -> Path:
    """To profile.proto; ``program``: another than etmem-runner."""
    binary = program or libraries()[-1]
    command = ["go", "tool", "pprof", "-proto", *options, "-output", str(output), str(binary), str(dump)]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "PPROF_TMPDIR": str(dump.parent)})
    return output
