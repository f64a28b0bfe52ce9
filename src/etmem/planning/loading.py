"""What a loader takes for a piece of a file: whole pages of a mapping, or a heap block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from etmem.planning.ledger import Entry

if TYPE_CHECKING:
    from etmem.model.words import Category


_ALIGNMENT = 16
"""Of the heap blocks that a file is read into."""


@dataclass(frozen=True)
class Loader:
    """``mode`` is ``mmap``, ``mlock``, ``file`` or ``buffer``."""

    mode: str
    page_bytes: int = 4096

    def piece(self, owner: str, instance: str | None, category: Category, offset: int, size: int) -> Entry:
        """The entry of ``size`` bytes at ``offset`` of the file. A buffer holds the whole file already."""
        if self.mode == "buffer" or size == 0:
            return Entry(owner, instance, category, 0)
        if self.mode == "file":
            return Entry(owner, instance, category, -(-size // _ALIGNMENT) * _ALIGNMENT)
        first = offset // self.page_bytes * self.page_bytes
        last = -(-(offset + size) // self.page_bytes) * self.page_bytes
        return Entry(owner, instance, category, 0, file_bytes=last - first)
