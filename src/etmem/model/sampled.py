"""What a heap profile of another profiler tells, schema ``etmem.sampled/1``.

It has no phases in time, no peaks by phase, no file mappings, no RSS and no balance, so none of these is here: what was
live at one moment, at which call stacks, and whose that is.
"""

from __future__ import annotations

from dataclasses import dataclass

from etmem.model.summary import Issue
from etmem.model.words import Category, PhaseKind

SCHEMA = "etmem.sampled/1"


@dataclass(frozen=True)
class SampledBytes:
    live_bytes: int
    live_blocks: int
    allocated_bytes: int
    """Since profiling began; 0 where the profile does not tell."""
    allocated_blocks: int


@dataclass(frozen=True)
class SampledCategory:
    category: Category
    phase: PhaseKind | None
    """In which it was allocated, by the call stack; null outside of ExecuTorch."""
    figures: SampledBytes


@dataclass(frozen=True)
class SampledOwner:
    owner: str
    figures: SampledBytes
    categories: tuple[SampledCategory, ...]


@dataclass(frozen=True)
class SampledStack:
    """One call stack; several of the profile's where they have the same names."""

    owner: str
    category: Category
    phase: PhaseKind | None
    operator: str | None
    """The delegate's own, where its description tells."""
    frames: tuple[str, ...]
    """Outermost first; a frame without a name is its module."""
    figures: SampledBytes


@dataclass(frozen=True)
class SampledModule:
    path: str
    build_id: str
    symbols: str
    """The file that named its functions; empty: the profile itself did, or nothing."""
    frames: int
    unnamed: int
    """Frames that have no name."""


@dataclass(frozen=True)
class SampledProfile:
    file: str
    format: str
    process: str
    interval_bytes: int
    """About one sample for so many bytes: figures are estimates. 1: every allocation; 0: not told."""
    moment: str
    """What live means."""
    total: SampledBytes
    owners: tuple[SampledOwner, ...]
    modules: tuple[SampledModule, ...]
    stacks: tuple[SampledStack, ...]
    issues: tuple[Issue, ...]
    sampled: bool = True
    schema: str = SCHEMA
