"""What analysis asks of a delegate's description."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from etmem.delegates.description import Description as Full
from etmem.model.words import Category

if TYPE_CHECKING:
    from etmem.analysis.scopes import Instance


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


def described(instances: Iterable[Instance], descriptions: Descriptions) -> Iterator[tuple[str, Full]]:
    """The backends that were used, each with all that is known about it."""
    for backend in sorted({instance.backend for instance in instances}):
        found = descriptions.get(backend)
        if isinstance(found, Full):
            yield backend, found


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
