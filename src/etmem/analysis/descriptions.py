"""What analysis asks of a delegate's description."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from etmem.model.words import Category


class Description(Protocol):
    """What is known about one backend's memory; ``etmem.delegates`` has one module for each."""

    def category(self, symbols: Sequence[str], function: str) -> Category:
        """What a block is for.

        ``symbols`` are the names of the functions on its call stack, innermost first, empty where no stack was
        recorded and "" for a frame without a name; ``function`` is the one that allocated: ``malloc``,
        ``posix_memalign``, ``realloc``, ..., or ``mmap``.
        """
        ...

    def shared(self, symbols: Sequence[str], function: str) -> str | None:
        """The object that the block belongs to and that instances may share: ``workspace``, ``weight_cache``."""
        ...


Descriptions = Mapping[str, Description]
"""By backend id."""

ALLOCATION_FUNCTIONS = (
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "posix_memalign",
    "aligned_alloc",
    "memalign",
    "valloc",
    "pvalloc",
)
"""By the flags of an ALLOC event."""
