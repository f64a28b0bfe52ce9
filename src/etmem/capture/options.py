"""What a capture is asked to do, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from etmem.model.errors import UsageError
from etmem.model.summary import Environment, Issue, Target

Progress = Callable[[str], None]
"""Called with a short line whenever a capture starts a step that may take a while."""

DEFAULT_ITERATIONS = 2
"""The first inference warms up, the second is steady state."""


def silent(step: str) -> None:
    """The progress callback of who does not want any."""


class LoadMode(StrEnum):
    MMAP = "mmap"
    MLOCK = "mlock"
    FILE = "file"
    BUFFER = "buffer"


class Preset(StrEnum):
    """Backend defaults of ExecuTorch's build presets."""

    WHEEL = "wheel"
    ANDROID = "android"
    APPLE = "apple"


class Runtime(StrEnum):
    NATIVE = "native"
    PYTHON = "python"


@dataclass(frozen=True)
class ShapeOption:
    """``--shape [METHOD:]INDEX=1x3x224x224``; several for one input run one after the other, in order."""

    method: str | None
    """None: every method that has this input."""
    index: int
    shape: tuple[int, ...]


@dataclass(frozen=True)
class BackendOption:
    """``--backend-option BACKEND:KEY=VALUE``, as ExecuTorch's backend options are typed."""

    backend: str
    key: str
    value: bool | int | str

    def __str__(self) -> str:
        value = str(self.value).lower() if isinstance(self.value, bool) else self.value
        return f"{self.backend}:{self.key}={value}"


def parse_shape(text: str) -> ShapeOption:
    """``[METHOD:]INDEX=1x3x224x224``; a scalar's shape is empty: ``0=``. Raises UsageError."""
    place, equals, shape = text.partition("=")
    method, colon, index = place.rpartition(":")
    if equals and index.isdecimal() and (method or not colon):
        sizes = shape.split("x") if shape else []
        if all(size.isdecimal() for size in sizes):
            return ShapeOption(method or None, int(index), tuple(int(size) for size in sizes))
    raise UsageError(f"not a shape: {text!r}", "write [METHOD:]INDEX=SIZES, for example 0=1x3x224x224 or decode:1=1x8")


def parse_backend_option(text: str) -> BackendOption:
    """``BACKEND:KEY=VALUE``; true and false are booleans, digits a number. Raises UsageError."""
    backend, colon, rest = text.partition(":")
    key, equals, value = rest.partition("=")
    if not (backend and colon and key and equals):
        hint = "write BACKEND:KEY=VALUE, for example XnnpackBackend:weight_cache_enabled=true"
        raise UsageError(f"not a backend option: {text!r}", hint)
    if value in ("true", "false"):
        return BackendOption(backend, key, value == "true")
    return BackendOption(backend, key, int(value) if value.removeprefix("-").isdecimal() else value)


@dataclass(frozen=True)
class ProfileOptions:
    """``etmem profile``."""

    program: Path
    methods: tuple[str, ...] = ()
    """Empty: every method that is not constant."""
    iterations: int = DEFAULT_ITERATIONS
    cycles: int = 1
    """How often the program is loaded, run and unloaded, all in one process."""
    inputs: tuple[Path, ...] = ()
    """``.npz`` files, each one set of inputs; several run one after the other."""
    shapes: tuple[ShapeOption, ...] = ()
    load_mode: LoadMode = LoadMode.MMAP
    data: tuple[Path, ...] = ()
    """``.ptd`` files."""
    threads: int | None = None
    backend_options: tuple[BackendOption, ...] = ()
    preset: Preset = Preset.WHEEL
    share_arenas: bool = False
    libraries: tuple[Path, ...] = ()
    """Shared objects with operators or backends, loaded before the program."""
    dry: bool | None = None
    """None: where the CPU is emulated, for computing is slow there."""
    arch: str | None = None
    """``aarch64``, ``x86-64``; None: that of ``cpu``, or this machine's."""
    cpu: str | None = None
    """A model of ``etmem.capture.cpus``, or ``host``; None: the usual one of ``arch``, or this machine's."""
    runtime: Runtime = Runtime.NATIVE
    output: Path | None = None
    """The trace; None: ``<program stem>.etmem`` in the working directory."""
    executorch: Path | None = None
    """Prefix of the ExecuTorch installation; None: the wheel of this Python."""
    keep_rusage: bool = False
    """Leave the kernel's high water alone: the program's own ru_maxrss stays right, peaks of RSS are not known."""
    all_stacks: bool = False
    """Every allocation inside a phase records its native call stack, and each phase its Python one."""
    describe: tuple[Path, ...] = ()
    """Descriptions of delegates, over those that are known."""
    sources: tuple[str, ...] = ()
    """Names of ``etmem.sources`` that are asked while it runs."""
    etrecord: Path | None = None
    """Gives source lines; None: the one beside the program, if there is one."""
    trust_etrecord: bool = False
    """Read it by ExecuTorch's own reader, which runs what stands in the file."""
    etdump: Path | None = None
    """Write an ETDump, from a second run, with the memory of the first."""
    etdump_allocations: bool = False
    """All allocation events in it too, on which ExecuTorch's own Inspector raises."""
    progress: Progress = field(default=silent, compare=False)


@dataclass(frozen=True)
class RunOptions:
    """``etmem run -- CMD``."""

    output: Path | None = None
    """The trace; None: ``<command name>.etmem`` in the working directory."""
    children: bool = False
    """Record child processes too, each into its own trace."""
    dry: bool = False
    executorch: Path | None = None
    keep_rusage: bool = False
    all_stacks: bool = False
    describe: tuple[Path, ...] = ()
    sources: tuple[str, ...] = ()
    progress: Progress = field(default=silent, compare=False)


@dataclass(frozen=True)
class Capture:
    """A finished capture. Its trace holds all that a report needs."""

    trace_path: Path
    log_path: Path | None
    """What the process wrote to stderr, ExecuTorch's log included, where it was kept."""
    exit_status: int
    """The process's exit code, or minus the signal that ended it."""
    target: Target
    environment: Environment
    programs: tuple[Path, ...]
    dry: bool
    issues: tuple[Issue, ...] = ()
    """What the launcher found; analysis adds its own."""
    describe: tuple[Path, ...] = ()
    """Descriptions of delegates that it was made with."""
