"""A heap profile as values, whoever made it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Module:
    """A file whose code is on call stacks."""

    path: str
    """As the profile names it: on the device, perhaps inside of an APK."""
    build_id: str
    """In hexadecimal; empty where the profile has none."""


@dataclass(frozen=True)
class Frame:
    """A place in code."""

    module: Module | None
    address: int
    """Of the call: in the module's file where ``in_file``, else as the linker numbers it."""
    in_file: bool
    name: str
    """As the profile has it, mangled or not; empty where it has none."""


@dataclass(frozen=True)
class Sample:
    """What was allocated at one call stack; estimates, where the profiler samples."""

    stack: tuple[Frame, ...]
    """Innermost first."""
    live_bytes: int
    live_blocks: int
    allocated_bytes: int
    allocated_blocks: int


@dataclass(frozen=True)
class HeapProfile:
    format: str
    """``pprof`` or ``heapprofd``."""
    interval_bytes: int
    """About one sample is taken for so many bytes; 0 where the profile does not say."""
    moment: str
    """What live means: ``when the profile was taken``, ``at its own peak``."""
    samples: tuple[Sample, ...]
    process: str = ""
    remarks: tuple[str, ...] = ()
    """What its profiler says is missing."""
