"""Where modules lie in the process: from module records and from the maps of snapshots."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath

from etmem.trace.layout import MAPS_LINE
from etmem.trace.tables import Trace


@dataclass(frozen=True)
class Vma:
    """One line of /proc/self/maps."""

    start: int
    end: int
    permissions: str
    offset: int
    path: str
    """As the kernel prints it: a file, ``[heap]``, ``[stack]``, or empty."""

    @property
    def is_file(self) -> bool:
        return self.path.startswith("/")

    @property
    def is_anonymous(self) -> bool:
        return self.path == "" or self.path.startswith("[anon")

    @property
    def is_executable(self) -> bool:
        return "x" in self.permissions


@dataclass(frozen=True)
class Mapped:
    """A piece of a module that holds code: the address ``start`` shows the byte ``offset`` of its file.

    Without an offset it is a whole module, from its lowest address on.
    """

    start: int
    end: int
    offset: int | None
    path: str


def parse_maps(text: str) -> tuple[Vma, ...]:
    """The lines of /proc/self/maps; a torn last line and the vsyscall page are left out."""
    found = []
    for line in text.split("\n"):
        fields = MAPS_LINE.match(line)
        if fields is not None:
            start, end, permissions, offset, path = fields.groups()
            found.append(
                Vma(int(start, 16), int(end, 16), permissions, int(offset, 16), path.removesuffix(" (deleted)"))
            )
    return tuple(found)


@dataclass(frozen=True)
class CodeMap:
    """The code of every module that was seen."""

    pieces: tuple[Mapped, ...]
    """By address: what snapshots say of mappings."""
    modules: tuple[Mapped, ...] = ()
    """Whole modules, where there is no snapshot that has them."""

    @cached_property
    def _starts(self) -> list[int]:
        return [piece.start for piece in self.pieces]

    def at(self, address: int) -> Mapped | None:
        position = bisect_right(self._starts, address) - 1
        piece = self.pieces[position] if position >= 0 else None
        if piece is not None and address < piece.end:
            return piece
        return next((module for module in self.modules if module.start <= address < module.end), None)


def code_map(trace: Trace) -> CodeMap:
    """From all snapshots and module records; where two disagree about an address, the last one counts."""
    found: dict[int, Mapped] = {}
    for snapshot in trace.snapshots:
        for vma in parse_maps(snapshot.maps):
            if vma.is_file and vma.is_executable:
                found[vma.start] = Mapped(vma.start, vma.end, vma.offset, vma.path)
    modules = tuple(Mapped(m.base, m.base + m.bytes, None, m.path) for m in reversed(trace.modules))
    return CodeMap(tuple(found[start] for start in sorted(found)), modules)


def executorch_libraries(trace: Trace) -> frozenset[str]:
    """Paths that the capture named as ExecuTorch's, beside those that their names give away."""
    keys = ("executorch.library", "executorch.pool.library")
    return frozenset(value for key, value in trace.notes if key in keys)


def is_executorch(path: str, named: Iterable[str]) -> bool:
    return path in named or PurePath(path).name.startswith(("libexecutorch", "_portable_lib"))
