"""What a delegate will allocate, told by its blob: the contract between descriptions and ``etmem plan``.

A description names a function ``estimate(blob, machine, options) -> BlobEstimate``. It reads the blob and nothing
else, raises ``CannotEstimate`` for what it does not understand, and says how sure it is of each block.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from typing import cast

from etmem.model.errors import InputError
from etmem.model.words import Category


class CannotEstimate(Exception):  # noqa: N818 -- an answer, caught by who asked
    """The blob is of a version or kind that the estimate does not know; the message says which."""


class Sureness(StrEnum):
    """How sure a figure is. A sum is as sure as its least sure part."""

    EXACT = "exact"
    """Follows from the file and the named target; a run counts the same bytes."""
    COMPUTED = "computed"
    """Follows from how the runtime works, sizes of its own structures included, which differ between versions."""
    BOUNDED = "bounded"
    """Only an interval is known."""

    @property
    def rank(self) -> int:
        return list(Sureness).index(self)


class Life(StrEnum):
    """From when to when a block lives."""

    MOMENT = "moment"
    """Gone before the next block is made."""
    CREATE = "create"
    """Gone once the next block is there."""
    INIT = "init"
    """Gone at the end of the delegate's init."""
    LOADED = "loaded"
    """From init to unload."""
    FIRST = "first"
    """Gone at the end of the first execute."""
    EXECUTE = "execute"
    """Gone at the end of each execute."""
    STEADY = "steady"
    """From the first execute to unload."""


@dataclass(frozen=True)
class Machine:
    """What sizes depend on beside the blob."""

    isa: str
    """The instruction set that tiles follow: ``avx512``, ``avx2``, ``neon``, ..."""
    cpu: str
    """The model, as ``--cpu`` names it; empty or a name of no table here: any with that instruction set."""
    pointer_bytes: int
    threads: int
    executorch: str | None
    """The version, where it is known; sizes of structures are those of the version that they were read from."""


@dataclass(frozen=True)
class BlobBlock:
    """One block, or ``count`` equal ones."""

    category: Category
    bytes: int
    life: Life
    sure: Sureness
    what: str
    """The operator or value that it is for."""
    count: int = 1
    low: int | None = None
    """For a bounded block: the least that it can be; None for ``bytes``."""
    high: int | None = None
    key: str | None = None
    """Blocks of one key are one block where the backend's weight cache is on."""
    once: str | None = None
    """Of blocks with one such name, only the first of a process is made."""

    @property
    def total_bytes(self) -> int:
        return self.bytes * self.count


@dataclass(frozen=True)
class NamedUse:
    """Named data of the program that the delegate loads in its init."""

    key: str
    kept: bool
    """It stays until unload; else it is freed at the end of init."""


@dataclass(frozen=True)
class BlobEstimate:
    named_data: tuple[NamedUse, ...]
    blocks: tuple[BlobBlock, ...]
    workspace: BlobBlock | None
    """What instances may share, from the first execute on."""
    blob_kept: bool
    once: tuple[BlobBlock, ...] = ()
    """What the first delegate of a process makes for all of its backend."""
    notes: tuple[str, ...] = ()
    """What in the blob is not understood, for the reader."""
    temp: tuple[int, int] | None = None
    """(bytes, alignment) that each execute asks of ExecuTorch's temp allocator."""


Estimate = Callable[[memoryview, Machine, Mapping[str, str]], BlobEstimate]


def load(reference: str) -> Estimate:
    """The function that ``package.module:name`` refers to. Raises InputError where there is none."""
    module, _, name = reference.partition(":")
    try:
        function = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        hint = "It has to be importable here: install its package, or put its folder into PYTHONPATH."
        raise InputError(f"the estimate {reference} cannot be imported: {error}", hint) from error
    return cast("Estimate", function)


def least_sure(parts: list[Sureness]) -> Sureness:
    return max(parts, key=lambda part: part.rank, default=Sureness.EXACT)
