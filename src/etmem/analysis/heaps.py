"""What registered heaps handed out: ExecuTorch's method and temp allocators, and any other."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from etmem.analysis.lookup import I64, containing
from etmem.analysis.threads import Threads
from etmem.trace.arenas import Arena, arenas
from etmem.trace.tables import NEVER, U32, U64, Blocks, EventKind, Events, MemoryKind, Trace


@dataclass(frozen=True)
class Extents:
    """One row per allocation from a registered heap, by begin stamp."""

    begin: U64
    end: U64
    """Of its free, of the heap's next reset, or of the next allocation at its address; or NEVER."""
    address: U64
    bytes: U64
    heap: U32
    scope: U32
    """Whose work it was."""
    phase: U32
    thread: U32

    def __len__(self) -> int:
        return len(self.begin)


Columns = list[npt.NDArray[Any]]
_NOTHING: Columns = [np.empty(0, kind) for kind in (np.uint64,) * 4 + (np.uint32,) * 3]


def extents(trace: Trace, events: Events, threads: Threads) -> Extents:
    """``events`` have all of the heaps' own."""
    found = [_extents(arena) for _, arena in sorted(arenas(replace(trace, events=events)).items())]
    columns: Columns = [np.concatenate(parts) for parts in zip(*found, strict=True)] if found else _NOTHING
    begin, end, address, size, heap, scope, thread = (column[np.argsort(columns[0])] for column in columns)
    who = threads.attribute(scope, thread, begin)
    return Extents(begin, end, address, size, heap, who.scope, who.phase, thread)


def split(extents: Extents, trace: Trace) -> tuple[Extents, Extents]:
    """What lies in the process's memory, and what lies in devices'."""
    of_devices = [heap.id for heap in trace.heaps.values() if heap.memory is not MemoryKind.HOST]
    away = np.isin(extents.heap, of_devices)
    return _where(extents, ~away), _where(extents, away)


def _where(extents: Extents, rows: npt.NDArray[np.bool_]) -> Extents:
    return Extents(**{field.name: getattr(extents, field.name)[rows] for field in fields(Extents)})


def _extents(arena: Arena) -> Columns:
    allocs = np.flatnonzero(arena.kind == EventKind.HEAP_ALLOC)
    begin, address = arena.stamp[allocs], arena.address[allocs]
    heap = np.full(len(allocs), arena.heap, np.uint32)
    end = np.minimum(_next_at_address(arena)[allocs], _next_reset(arena, begin))
    return [begin, end, address, arena.size[allocs], heap, arena.scope[allocs], arena.thread[allocs]]


def blocks_of(extents: Extents, blocks: Blocks) -> I64:
    """The row of the block that each extent lies in."""
    return containing(blocks, extents.address, extents.begin)


def _next_at_address(arena: Arena) -> U64:
    """For each event, the stamp of the next free or allocation at its address."""
    rows = np.flatnonzero(arena.kind != EventKind.HEAP_RESET)
    order = rows[np.lexsort((arena.stamp[rows], arena.address[rows]))]
    follows = arena.address[order][1:] == arena.address[order][:-1]
    after = np.full(len(arena), NEVER)
    after[order[:-1][follows]] = arena.stamp[order[1:][follows]]
    return after


def _next_reset(arena: Arena, begin: U64) -> U64:
    stamps: U64 = np.append(arena.stamp[arena.kind == EventKind.HEAP_RESET], NEVER)
    following: U64 = stamps[np.searchsorted(stamps, begin, "right").clip(max=len(stamps) - 1)]
    return following
