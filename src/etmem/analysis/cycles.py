"""What stays after each cycle of load, run and unload: a leak by its blocks, and what malloc merely keeps.

A block that is live after a cycle is the program's; RSS that goes with malloc_trim was free memory that malloc
had kept. Blocks are told apart by owner, category, size and call stack: of such a group, one more after each
cycle is a leak, the same number is something that is made once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from etmem.model.words import PROFILER, Category

if TYPE_CHECKING:
    from etmem.analysis.context import Account
    from etmem.trace.tables import Snapshot

SCHEMA = "etmem.cycles/1"
_BEFORE, _AFTER = "cycle", "cycle_trimmed"
"""Names of the runner's snapshots: when all is unloaded, and after malloc_trim."""


@dataclass(frozen=True)
class OwnerLive:
    owner: str
    bytes: int
    blocks: int


@dataclass(frozen=True)
class Cycle:
    """One cycle after its unload. Null figures: RSS was not sampled, or the run ended before the trim."""

    live_bytes: int
    """Of all owners but the profiler, allocated since the first load began."""
    owners: tuple[OwnerLive, ...]
    """Largest first."""
    rss_growth_bytes: int | None
    """Over RSS before the first load."""
    rss_growth_trimmed_bytes: int | None
    """The same after malloc_trim."""

    @property
    def retained_bytes(self) -> int | None:
        """What malloc kept and gave back when it was asked to."""
        if self.rss_growth_bytes is None or self.rss_growth_trimmed_bytes is None:
            return None
        return self.rss_growth_bytes - self.rss_growth_trimmed_bytes


@dataclass(frozen=True)
class Leak:
    """Blocks of which there are more after every cycle."""

    owner: str
    instance: str | None
    """Of the first such block."""
    category: Category
    requested_bytes: int
    blocks_per_cycle: float
    bytes_per_cycle: int
    live_blocks: tuple[int, ...]
    """After each cycle."""
    phase: str | None
    """The kind of the phase that allocates them."""
    stack: tuple[str, ...]
    """Functions, innermost first; empty where none was recorded."""


@dataclass(frozen=True)
class Cycles:
    cycles: tuple[Cycle, ...]
    leaks: tuple[Leak, ...]
    """The largest per cycle first."""
    complete: bool
    """False: the run ended before its last cycle did."""
    schema: str = SCHEMA

    @property
    def leaked_bytes_per_cycle(self) -> int:
        return sum(leak.bytes_per_cycle for leak in self.leaks)


def cycles(account: Account, asked: int | None = None) -> Cycles | None:
    """Null where the trace is none of ``etmem profile --cycles``."""
    ends = [snapshot for snapshot in account.trace.snapshots if snapshot.name == _BEFORE]
    trimmed = [snapshot for snapshot in account.trace.snapshots if snapshot.name == _AFTER]
    if not ends or not account.spans:
        return None
    start = next((sample.rss_bytes for sample in account.trace.rss if sample.scope == account.spans[0].scope.id), None)
    found = tuple(
        _cycle(account, end, trimmed[at] if at < len(trimmed) else None, start) for at, end in enumerate(ends)
    )
    return Cycles(found, _leaks(account, ends), complete=asked is None or len(ends) == asked)


def _cycle(account: Account, end: Snapshot, trimmed: Snapshot | None, start: int | None) -> Cycle:
    sizes: Counter[str] = Counter()
    blocks: Counter[str] = Counter()
    for row in _live(account, end.stamp).tolist():
        owner = account.keys[account.ledger.code[row]].owner
        sizes[owner] += _size(account, row)
        blocks[owner] += 1
    owners = tuple(OwnerLive(owner, size, blocks[owner]) for owner, size in sizes.most_common())
    growth = [
        snapshot.rss_bytes - start if snapshot is not None and start is not None else None
        for snapshot in (end, trimmed)
    ]
    return Cycle(sum(sizes.values()), owners, growth[0], growth[1])


def _live(account: Account, stamp: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Rows of the blocks that the cycles made and that are live, the profiler's left out."""
    rows = account.live_at(stamp)
    of_profiler = np.array([key.owner == PROFILER for key in account.keys], np.bool_)
    begun = account.blocks.begin[rows] >= np.uint64(account.spans[0].begin)
    keep = begun & ~of_profiler[account.ledger.code[rows]]
    return rows[keep & ((account.private_bytes[rows] > 0) | (account.file_bytes[rows] > 0))]


def _size(account: Account, row: int) -> int:
    return int(account.private_bytes[row] + account.file_bytes[row])


_Group = tuple[str, Category, int, int]
"""Owner, category, bytes, stack id."""


def _leaks(account: Account, ends: Sequence[Snapshot]) -> tuple[Leak, ...]:
    """One cycle tells nothing: what is made once looks like a leak."""
    if len(ends) < 2:
        return ()
    counts: dict[_Group, list[int]] = {}
    example: dict[_Group, int] = {}
    for at, end in enumerate(ends):
        for row in _live(account, end.stamp).tolist():
            key = account.keys[account.ledger.code[row]]
            group = (key.owner, key.category, _size(account, row), int(account.blocks.stack[row]))
            counts.setdefault(group, [0] * len(ends))[at] += 1
            example[group] = row
    found = [_leak(account, group, held, example[group]) for group, held in counts.items() if _grows(held)]
    return tuple(sorted(found, key=lambda leak: (-leak.bytes_per_cycle, leak.owner)))


def _grows(held: Sequence[int]) -> bool:
    """Never fewer, and more in most of the steps: a table that grew once is no leak."""
    steps = [after - before for before, after in pairwise(held)]
    return min(steps) >= 0 and 2 * sum(step > 0 for step in steps) > len(steps)


def _leak(account: Account, group: _Group, held: Sequence[int], row: int) -> Leak:
    owner, category, size, _ = group
    key = account.keys[account.ledger.code[row]]
    per_cycle = (held[-1] - held[0]) / (len(held) - 1)
    phase = account.phase_of(row)
    return Leak(
        owner=owner,
        instance=key.instance.label.partition(":")[2] or key.instance.label if key.instance else None,
        category=category,
        requested_bytes=size,
        blocks_per_cycle=per_cycle,
        bytes_per_cycle=round(size * per_cycle),
        live_blocks=tuple(held),
        phase=phase.value if phase is not None else None,
        stack=tuple(name for name in account.call_stack(row) if name),
    )
