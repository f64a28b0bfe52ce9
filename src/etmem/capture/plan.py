"""What a runner is to do, and the text that ``etmem-runner`` reads it from (native/runner/plan.h).

The Python runner reads the same text, so that both run the same inferences on the same inputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from etmem.capture.options import BackendOption, LoadMode
from etmem.program.model import ValueKind

if TYPE_CHECKING:
    from pathlib import Path

VERSION = 1

_AFTER_LOAD = frozenset({"save_weight_cache_on_disk"})
"""Options that act when they are set, on what the loaded methods hold."""

_SCALARS = {ValueKind.INT: "int", ValueKind.BOOL: "bool", ValueKind.DOUBLE: "double", ValueKind.STRING: "string"}


class Fill(StrEnum):
    RANDOM = "random"
    """Uniform in [0, 1) for floats, zero for all else: any other integer may be out of an index's range."""
    ZEROS = "zeros"
    FILE = "file"


@dataclass(frozen=True)
class TensorInput:
    dtype: int
    """ExecuTorch's ScalarType."""
    shape: tuple[int, ...]
    fill: Fill
    seed: int = 0
    path: Path | None = None
    """For ``FILE``: where the bytes are, in the order the tensor has in memory."""
    offset: int = 0


@dataclass(frozen=True)
class ScalarInput:
    kind: ValueKind
    value: int | float | bool | str | None


PlanInput = TensorInput | ScalarInput


@dataclass(frozen=True)
class MethodRun:
    """One set of inputs of one method, run ``iterations`` times."""

    method: str
    iterations: int
    inputs: tuple[PlanInput, ...]


@dataclass(frozen=True)
class RunnerPlan:
    program: Path
    methods: tuple[str, ...]
    runs: tuple[MethodRun, ...]
    data: tuple[Path, ...] = ()
    load_mode: LoadMode = LoadMode.MMAP
    libraries: tuple[Path, ...] = ()
    options: tuple[BackendOption, ...] = ()
    threads: int | None = None
    share_arenas: bool = False
    dry: bool = False
    etdump: Path | None = None
    cycles: int = 1
    """How often all of it is done; after each, malloc gives back what it can."""
    debug_bytes: int = 0
    """Of the ETDump's buffer for intermediate outputs; 0: none are recorded."""
    outputs: Path | None = None
    """Where the outputs of each run's last iteration go."""


def encode(plan: RunnerPlan) -> str:
    """The plan's text."""
    lines: list[tuple[object, ...]] = [("etmem-plan", VERSION), ("program", plan.program.absolute())]
    lines += [("data", path.absolute()) for path in plan.data]
    lines += [("loader", plan.load_mode)]
    lines += [("library", path.absolute()) for path in plan.libraries]
    lines += [_option(option) for option in plan.options]
    lines += [("threads", plan.threads)] if plan.threads else []
    lines += [("share_arenas", 1)] if plan.share_arenas else []
    lines += [("dry", 1)] if plan.dry else []
    lines += [("cycles", plan.cycles)] if plan.cycles > 1 else []
    lines += [("etdump", plan.etdump.absolute(), plan.debug_bytes)] if plan.etdump else []
    lines += [("outputs", plan.outputs.absolute())] if plan.outputs else []
    lines += [("method", method) for method in plan.methods]
    for run in plan.runs:
        lines.append(("run", run.method, run.iterations))
        lines += [_input(value) for value in run.inputs]
    return "".join("\t".join(_escape(str(field)) for field in line) + "\n" for line in lines)


def _option(option: BackendOption) -> tuple[object, ...]:
    when = "after" if option.key in _AFTER_LOAD else "before"
    if isinstance(option.value, bool):
        return ("option", option.backend, option.key, "bool", int(option.value), when)
    kind = "int" if isinstance(option.value, int) else "string"
    return ("option", option.backend, option.key, kind, option.value, when)


def _input(value: PlanInput) -> tuple[object, ...]:
    if isinstance(value, ScalarInput):
        if value.kind not in _SCALARS:
            return ("none",)
        return (_SCALARS[value.kind], int(value.value) if isinstance(value.value, bool) else value.value)
    head = ("tensor", value.dtype, "x".join(str(size) for size in value.shape) or "-", value.fill)
    if value.fill is Fill.RANDOM:
        return (*head, value.seed)
    if value.path is not None:
        return (*head, value.path.absolute(), value.offset)
    return head


def _escape(field: str) -> str:
    """Tabs and line ends delimit, so they are written as ``%09`` and ``%0A``, and ``%`` as ``%25``."""
    return field.replace("%", "%25").replace("\t", "%09").replace("\n", "%0A").replace("\r", "%0D")
