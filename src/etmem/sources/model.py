"""What a source of memory figures is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from etmem.model.words import Unit


@dataclass(frozen=True)
class Reading:
    """One value at the time it was asked for."""

    name: str
    """Within its source: ``memory.current``. The report shows ``SOURCE.NAME``."""
    value: int
    unit: Unit = Unit.BYTES


@runtime_checkable
class MemorySource(Protocol):
    """Something that knows byte counts which no allocation of the process tells.

    It is asked from one thread at a time, about a hundred times a second and at the edges of phases, so ``read`` has
    to be quick. What it raises ends its readings and is an issue of the report.
    """

    @property
    def name(self) -> str:
        """Short, for the report: ``cgroup``."""
        ...

    @property
    def what(self) -> str:
        """One line: whose figures these are, and what else is in them."""
        ...

    def read(self) -> Iterable[Reading]:
        """The values now. Names need not be the same every time."""
        ...


Factory = Callable[[int], MemorySource]
"""What an entry point names: makes the source for the process of an id; raises UsageError where it cannot be had."""
