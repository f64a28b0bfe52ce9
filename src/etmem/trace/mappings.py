"""What is mapped where, and since when: an interval map driven by the mapping events, in stamp order."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from etmem.trace.layout import SIZE_BITS
from etmem.trace.tables import NEVER, BlockKind, EventKind, Events, FileMap, MapFlag

NO_FILE = -1

# Plain numbers: an operation on an enum costs more than all the rest of an event.
_MAP, _UNMAP, _UNDO = int(EventKind.MAP), int(EventKind.UNMAP), int(EventKind.UNDO)
_PROTECT, _BREAK = int(EventKind.PROTECT), int(EventKind.BREAK)
_FILE, _RESERVED, _SHARED = int(MapFlag.FILE), int(MapFlag.RESERVED), int(MapFlag.SHARED)
_NESTED, _MOVED = int(MapFlag.NESTED), int(MapFlag.MOVED)


class Piece(NamedTuple):
    """[start, end): part of a mapping, or all of it, unchanged since the stamp ``begin``."""

    begin: int
    start: int
    end: int
    kind: BlockKind
    """What it is when it can be accessed; never RESERVED."""
    reserved: bool
    file: int
    scope: int
    stack: int
    thread: int


class Row(NamedTuple):
    """A piece and the stamp that ended it."""

    piece: Piece
    end: int

    @property
    def kind(self) -> BlockKind:
        return BlockKind.RESERVED if self.piece.reserved else self.piece.kind


@dataclass
class IntervalMap:
    """Disjoint pieces by address. Whatever changes one ends its row; what is left of it begins a new one."""

    pieces: list[Piece] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)

    def overlapping(self, start: int, end: int) -> list[Piece]:
        low, high = self._range(start, end)
        return self.pieces[low:high]

    def cut(self, stamp: int, start: int, end: int) -> list[Piece]:
        """Takes [start, end) out and returns the parts taken."""
        low, high = self._range(start, end)
        old = self.pieces[low:high]
        if not old:
            return old
        self.rows.extend([Row(piece, stamp) for piece in old])
        first, last = old[0], old[-1]
        rest = []
        if first.start < start:
            rest.append(first._replace(begin=stamp, end=start))
            old[0] = first._replace(start=start)
        if last.end > end:
            rest.append(last._replace(begin=stamp, start=end))
            old[-1] = old[-1]._replace(end=end)
        self.pieces[low:high] = rest
        self.starts[low:high] = [piece.start for piece in rest]
        return old

    def put(self, piece: Piece) -> None:
        """Adds a piece where nothing is."""
        at = bisect_left(self.starts, piece.start)
        self.pieces.insert(at, piece)
        self.starts.insert(at, piece.start)

    def finish(self) -> list[Row]:
        """All rows, those of what is still mapped included, by begin and address."""
        rows = self.rows + [Row(piece, int(NEVER)) for piece in self.pieces]
        return sorted(rows)  # a piece begins with its stamp and its address

    def _range(self, start: int, end: int) -> tuple[int, int]:
        if end <= start:
            return 0, 0
        low = bisect_right(self.starts, start)
        if low and self.pieces[low - 1].end > start:
            low -= 1
        return low, bisect_left(self.starts, end, low)


class _Event(NamedTuple):
    stamp: int
    kind: int
    flags: int
    address: int
    size: int
    scope: int
    stack: int
    thread: int


def follow(events: Events, file_maps: tuple[FileMap, ...], page_bytes: int) -> tuple[list[Row], int]:
    """The rows that mapping events make, and the number of undos without anything to undo.

    A mapping over another one replaces it. A partial unmap ends the block, and each surviving piece begins
    there as a row of its own with the original's scope, stack, thread and file. So does a change of
    protection: what becomes PROT_NONE is RESERVED and stays its maker's; what becomes accessible belongs to
    the caller, since it counts from then on. mremap is an unmap and a map with MOVED, which is of the kind
    and the file that the thread's unmap took away and belongs to the caller. A break that grows is an
    anonymous mapping of the caller's. NESTED mappings are parts of an allocator's heap and make no rows.
    Advice changes what is resident, not what is mapped.
    """
    follower = _Follower({row.stamp: index for index, row in enumerate(file_maps)}, page_bytes)
    names = ("stamp", "kind", "flags", "address", "size", "scope", "stack", "thread")
    table = [_Event._make(row) for row in zip(*(getattr(events, name).tolist() for name in names), strict=True)]
    never_happened, unmatched = _undone(table)
    for index, event in enumerate(table):
        if index not in never_happened:
            follower.apply(event)
    return follower.map.finish(), unmatched


def _undone(events: list[_Event]) -> tuple[set[int], int]:
    """The unmaps that failed: of each undo, the thread's last one of that address."""
    last: dict[tuple[int, int], int] = {}
    undone: set[int] = set()
    unmatched = 0
    for index, event in enumerate(events):
        key = (event.thread, event.address)
        if event.kind == _UNMAP:
            last[key] = index
        elif event.kind == _UNDO:
            if key in last:
                undone.add(last.pop(key))
            else:
                unmatched += 1
    return undone, unmatched


class _Follower:
    def __init__(self, files: dict[int, int], page_bytes: int) -> None:
        self.map = IntervalMap()
        self.files = files
        self.page_mask = page_bytes - 1
        self.taken: dict[int, Piece] = {}
        """Per thread, what its last unmap took away, when that was its last event: mremap puts it elsewhere."""

    def apply(self, event: _Event) -> None:
        taken = self.taken.pop(event.thread, None)
        if event.kind == _MAP:
            self._map(event, taken if event.flags & _MOVED else None)
        elif event.kind == _UNMAP:
            self._unmap(event)
        elif event.kind == _PROTECT:
            self._protect(event)
        elif event.kind == _BREAK:
            self._break(event)

    def _span(self, event: _Event) -> tuple[int, int]:
        """In whole pages, as the kernel rounds."""
        return event.address & ~self.page_mask, event.address + event.size + self.page_mask & ~self.page_mask

    def _map(self, event: _Event, moved: Piece | None) -> None:
        start, end = self._span(event)
        self.map.cut(event.stamp, start, end)
        if event.flags & _NESTED or start == end:
            return
        kind, reserved, file = _kind(event.flags), event.flags & _RESERVED != 0, NO_FILE
        if moved is not None and kind is BlockKind.ANONYMOUS:
            kind, reserved, file = moved.kind, moved.reserved or reserved, moved.file
        file = self.files.get(event.stamp, file)
        self.map.put(Piece(event.stamp, start, end, kind, reserved, file, event.scope, event.stack, event.thread))

    def _unmap(self, event: _Event) -> None:
        parts = self.map.cut(event.stamp, *self._span(event))
        if parts:
            self.taken[event.thread] = parts[0]

    def _protect(self, event: _Event) -> None:
        start, end = self._span(event)
        reserved = bool(event.flags & 1)
        for piece in self.map.overlapping(start, end):
            if piece.reserved == reserved:
                continue
            (part,) = self.map.cut(event.stamp, max(piece.start, start), min(piece.end, end))
            part = part._replace(begin=event.stamp, reserved=reserved)
            if not reserved:
                part = part._replace(scope=event.scope, stack=event.stack, thread=event.thread)
            self.map.put(part)

    def _break(self, event: _Event) -> None:
        growth = event.size - (1 << SIZE_BITS) if event.size >> (SIZE_BITS - 1) else event.size
        low, high = sorted((max(0, event.address - growth), event.address))
        self.map.cut(event.stamp, low, high)
        if growth > 0:
            kind = (BlockKind.ANONYMOUS, False, NO_FILE)
            self.map.put(Piece(event.stamp, low, high, *kind, event.scope, event.stack, event.thread))


def _kind(flags: int) -> BlockKind:
    if flags & _FILE:
        return BlockKind.FILE
    return BlockKind.SHARED if flags & _SHARED else BlockKind.ANONYMOUS


def is_mapping(kind: np.typing.NDArray[np.uint8]) -> np.typing.NDArray[np.bool_]:
    """Which events ``follow`` is about, undos apart."""
    return (kind >= EventKind.MAP) & (kind <= EventKind.BREAK)
