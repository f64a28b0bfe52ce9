"""The account: every block's owner, instance, category and bytes, and what is live at a moment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from etmem.analysis.clock import Clock
from etmem.analysis.edges import bins
from etmem.analysis.keys import Key
from etmem.analysis.lookup import I64
from etmem.analysis.owners import I32
from etmem.analysis.timeline import Timeline, Window, sums_at, timeline_of
from etmem.model.summary import CategoryBytes, Moment, OwnerBytes
from etmem.model.words import EXECUTORCH, HOST, PROFILER
from etmem.trace.folding import pieces
from etmem.trace.passes import LiveRows
from etmem.trace.tables import U64, BlockKind, Blocks, Folded

_ORDER = {EXECUTORCH: 0, HOST: 2, PROFILER: 3}
"""Delegates stand between."""


@dataclass(frozen=True)
class Ledger:
    """``private`` holds requested bytes of heap blocks and private anonymous mappings, ``file`` those of file
    mappings, in both those of all blocks that a row stands for. Shared anonymous memory is neither, and reserved
    address space is nothing."""

    blocks: Blocks
    brief: Folded
    keys: tuple[Key, ...]
    code: I32
    private: I64
    file: I64
    window: Window
    clock: Clock
    edges: U64
    """Sorted stamps at which every live block has a row of its own, in an account of a long trace; empty in others."""
    lines: dict[tuple[bytes, bool], Timeline] = field(default_factory=dict, compare=False)
    """Timelines that were asked for."""

    @cached_property
    def counted(self) -> npt.NDArray[np.bool_]:
        """Blocks that peaks count: private or file bytes of ExecuTorch and its delegates."""
        of_key = np.array([key.counted for key in self.keys], np.bool_)
        return of_key[self.code] & ((self.private > 0) | (self.file > 0))

    @cached_property
    def both(self) -> I64:
        """Private and file bytes of each block, of which it has one or the other."""
        return self.private + self.file if self.file.any() else self.private

    @cached_property
    def total(self) -> Timeline:
        """Private and file bytes of the counted owners."""
        return self._line([key.counted for key in self.keys], with_files=True)

    @cached_property
    def total_private(self) -> Timeline:
        return self._line([key.counted for key in self.keys], with_files=False)

    @cached_property
    def process_private(self) -> Timeline:
        """Private bytes of the whole process but the profiler's."""
        return self._line([key.owner != PROFILER for key in self.keys], with_files=False)

    def owner_timeline(self, owner: str) -> Timeline:
        return self._line([key.owner == owner for key in self.keys], with_files=True)

    def _line(self, of_key: list[bool], *, with_files: bool) -> Timeline:
        """The timeline of all blocks of some keys. What several ask for is made once: often one owner is all that
        counts, and has no files."""
        there, files = self._there
        chosen = np.array(of_key, np.bool_) & there
        with_files &= bool((chosen & files).any())
        asked = (chosen.tobytes(), with_files)
        if asked not in self.lines:
            weights = self.both if with_files else self.private
            self.lines[asked] = self._timeline(weights, chosen[self.code], self.window)
        return self.lines[asked]

    def timeline(self, wanted: npt.NDArray[np.bool_], window: Window | None = None) -> Timeline:
        """Private and file bytes of some rows over time."""
        return self._timeline(self.both, wanted, window or self.window)

    def _timeline(self, weights: I64, wanted: npt.NDArray[np.bool_], window: Window) -> Timeline:
        blocks = self.blocks
        rows = LiveRows(blocks.begin, blocks.end, self._each(weights), wanted, blocks.folded, self.brief)
        return timeline_of(rows, window, bins(self.edges, window.since, window.until) if len(self.brief) else None)

    def _each(self, weights: I64) -> I64:
        """What one of the blocks has that a row stands for."""
        return weights // self.blocks.count if len(self.brief) else weights

    def sums_at(self, stamps: U64, group: I32, groups: int) -> I64:
        """Private and file bytes per group of rows at any stamps, which are sorted; shape (groups, len(stamps)).

        ``group`` is by row, -1 for rows of none.
        """
        blocks = self.blocks
        own = np.flatnonzero((group >= 0) & (blocks.folded == 0))
        found = sums_at(stamps, blocks.begin[own], blocks.end[own], group[own], groups, self.both[own])
        each = self._each(self.both)
        for part in pieces(self.brief):
            chosen = np.flatnonzero(group[part.row] >= 0)
            begin, row = part.begin[chosen], part.row[chosen]
            found += sums_at(stamps, begin, begin + part.life[chosen], group[row], groups, each[row])
        return found

    @cached_property
    def _there(self) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """By key, whether any block has bytes, and whether any has file bytes."""
        files = np.bincount(self.code, self.file, len(self.keys)) > 0
        return files | (np.bincount(self.code, self.private, len(self.keys)) > 0), files

    def instance_rows(self, label: str) -> npt.NDArray[np.bool_]:
        """Blocks that one delegate instance owns alone."""
        of_key = np.array([key.instance is not None and key.instance.label == label for key in self.keys], np.bool_)
        return of_key[self.code]

    def live(self, stamp: int) -> npt.NDArray[np.bool_]:
        """The blocks that are live after all that happened at a stamp."""
        self._check(np.array([stamp], np.uint64))
        at = np.uint64(stamp)
        live: npt.NDArray[np.bool_] = (self.blocks.begin <= at) & (self.blocks.end > at) & (self.blocks.folded == 0)
        return live

    def _check(self, stamps: U64) -> None:
        """What has no row is live at other stamps only: a figure without it would be wrong, and nobody would see it."""
        if len(self.brief):
            place = np.searchsorted(self.edges, stamps).clip(max=len(self.edges) - 1)
            if (self.edges[place] != stamps).any():
                raise ValueError("a long trace was not made ready to be looked at there")

    def moment(self, stamp: int) -> Moment:
        return self.moments([stamp])[stamp]

    def moments(self, stamps: Iterable[int]) -> Mapping[int, Moment]:
        """What is live at each of many stamps, in one pass over the blocks."""
        wanted = sorted(set(stamps))
        at = np.array(wanted, np.uint64)
        if not wanted:
            return {}
        self._check(at)
        # Most blocks are gone again before the next of the stamps.
        seen_at_one = np.searchsorted(at, self.blocks.begin) != np.searchsorted(at, self.blocks.end)
        near = np.flatnonzero(seen_at_one & ((self.private > 0) | (self.file > 0)) & (self.blocks.folded == 0))
        span = (self.blocks.begin[near], self.blocks.end[near], self.code[near], len(self.keys))
        private = sums_at(at, *span, self.private[near])
        file = sums_at(at, *span, self.file[near])
        count = sums_at(at, *span, None)
        seen: dict[bytes, tuple[OwnerBytes, ...]] = {}
        found = {}
        for column, stamp in enumerate(wanted):
            figures = np.stack([private[:, column], file[:, column], count[:, column]])
            # Inferences of one method end alike: their rows are made once.
            content = figures.tobytes()
            owners = seen.get(content)
            if owners is None:
                owners = seen[content] = self._owners(figures)
            found[stamp] = _moment(self.clock.ns(stamp), owners, self.keys, figures)
        return found

    def _owners(self, figures: I64) -> tuple[OwnerBytes, ...]:
        rows: dict[tuple[str, str | None], list[CategoryBytes]] = {}
        for code in np.flatnonzero(figures[2]).tolist():
            key = self.keys[code]
            place = (key.owner, key.instance.label if key.instance else None)
            private, file, count = figures[:, code].tolist()
            rows.setdefault(place, []).append(CategoryBytes(key.category, private, file, count))
        ordered = sorted(rows, key=lambda place: self._order(*place))
        return tuple(_owner(*place, rows[place]) for place in ordered)

    def _order(self, owner: str, label: str | None) -> tuple[object, ...]:
        return (_ORDER.get(owner, 1), owner, self._instance_order.get(label, (0, "", "", 0)))

    @cached_property
    def _instance_order(self) -> dict[str | None, tuple[int, str, str, int]]:
        instances = (key.instance for key in self.keys if key.instance)
        return {i.label: (i.program, i.method, i.backend, i.index) for i in instances}


def byte_columns(blocks: Blocks) -> tuple[I64, I64]:
    """Private and file bytes of each row."""
    is_private = (blocks.kind == BlockKind.HEAP) | (blocks.kind == BlockKind.ANONYMOUS)
    is_file = blocks.kind == BlockKind.FILE
    sizes = blocks.bytes.astype(np.int64) * blocks.count
    # Pages of zeros that nobody writes to take no memory.
    files = np.where(is_file, sizes, 0) if is_file.any() else np.zeros(len(sizes), np.int64)
    return sizes if is_private.all() else np.where(is_private, sizes, 0), files


def merge(owner: str, rows: Sequence[OwnerBytes]) -> OwnerBytes:
    """Rows of one owner as one, of no instance."""
    return _owner(owner, None, [one for row in rows for one in row.categories])


def _owner(owner: str, label: str | None, categories: Sequence[CategoryBytes]) -> OwnerBytes:
    merged: dict[str, CategoryBytes] = {}
    for one in categories:
        old = merged.get(one.category)
        merged[one.category] = one if old is None else _add(old, one)
    largest_first = sorted(merged.values(), key=lambda c: (-(c.private_bytes + c.file_bytes), c.category))
    private = sum(one.private_bytes for one in largest_first)
    return OwnerBytes(owner, label, private, sum(one.file_bytes for one in largest_first), tuple(largest_first))


def _add(one: CategoryBytes, other: CategoryBytes) -> CategoryBytes:
    private = one.private_bytes + other.private_bytes
    return CategoryBytes(one.category, private, one.file_bytes + other.file_bytes, one.blocks + other.blocks)


def _moment(time_ns: int, owners: tuple[OwnerBytes, ...], keys: tuple[Key, ...], figures: I64) -> Moment:
    counted = np.array([key.counted for key in keys], np.bool_)
    return Moment(time_ns, int(figures[0][counted].sum()), int(figures[1][counted].sum()), owners)
