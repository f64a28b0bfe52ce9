"""What cannot run on another CPU, said before anything is fetched, built or run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from etmem.capture import arch as arch_
from etmem.capture import elf
from etmem.capture.options import Runtime
from etmem.model.errors import CaptureError, UsageError

if TYPE_CHECKING:
    from etmem.capture.cpus import Cpu
    from etmem.capture.job import Job
    from etmem.capture.options import ProfileOptions

_IN_WHEEL = frozenset({"XnnpackBackend", "OpenvinoBackend"})
"""Delegates whose ExecuTorch side is in the wheels for Linux."""
_OPENVINO = "OPENVINO_LIB_PATH"


def check(options: ProfileOptions, job: Job, cpu: Cpu) -> None:
    """Raises ``UsageError`` for options, ``CaptureError`` for a program that cannot run on this CPU model."""
    if options.runtime is Runtime.PYTHON:
        raise UsageError(f"the Python runtime runs on this machine's CPU only, not on {cpu.name}", _hint(options, cpu))
    for library in options.libraries:
        _check_library(library, cpu)
    if options.libraries:
        return  # They may bring any operator and any delegate.
    if job.python_only:
        names = ", ".join(job.python_only)
        raise CaptureError(
            f"{names} can only be had in a Python process with libtorch, which cannot run on {cpu.name}",
            _hint(options, cpu),
        )
    for backend in sorted(job.backends - _IN_WHEEL):
        raise CaptureError(
            f"{backend} is in no ExecuTorch wheel for {cpu.arch.shown}",
            f"Give its library for {cpu.arch.shown} with --library. {_hint(options, cpu)}",
        )
    if "OpenvinoBackend" in job.backends and cpu.arch != arch_.host():
        path = Path(os.environ.get(_OPENVINO, ""))
        if not path.is_file():
            raise CaptureError(
                f"OpenvinoBackend needs OpenVINO's own library for {cpu.arch.shown}, and {_OPENVINO} names none",
                _hint(options, cpu),
            )
        _check_library(path, cpu)


def _check_library(library: Path, cpu: Cpu) -> None:
    described = elf.read(library)
    if described is not None and described.machine != cpu.arch.name:
        raise UsageError(
            f"{library} is for {arch_.shown(described.machine)}, {cpu.name} is {cpu.arch.shown}",
            f"Build it with {cpu.arch.compiler}, against the same ExecuTorch.",
        )


def _hint(options: ProfileOptions, cpu: Cpu) -> str:
    # A plan needs no model: tiles follow the instruction set.
    return f"The next best: etmem plan {options.program.name} --cpu {cpu.isa}, from the file alone."
