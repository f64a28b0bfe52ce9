"""Where the resident pages of a snapshot belong: each resident byte on one line, or on none.

A live block has exactly the resident bytes that it covers. What no block covers goes by its mapping: the
program's file, a delegate's or another library, a stack, the profiler, or pages that malloc keeps. What is
left has no line: it is unaccounted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from etmem.analysis.context import Account
from etmem.analysis.lookup import I64
from etmem.analysis.modules import Vma, parse_maps
from etmem.model.words import PROFILER, Source, is_counted
from etmem.trace.tables import U64, BlockKind, ScopeKind, Snapshot

PROGRAM_FILE = "program file"
OTHER_LIBRARIES = "other libraries"
STACKS = "stacks"
RETAINED = "retained by malloc"

_PRESENT, _ZERO_PAGE = 1 << 3, 1 << 5
_ARENA_ALIGNMENT = 64 << 20
"""glibc's thread arenas start at multiples of HEAP_MAX_SIZE."""
_MMAP_THRESHOLD = 128 << 10
"""glibc gives no block below this its own mapping."""
_CHUNK_HEADER = 16


@dataclass(frozen=True)
class Coverage:
    """Disjoint sorted ranges, and how many of their bytes lie below an address."""

    starts: I64
    ends: I64

    def between(self, start: I64, end: I64) -> I64:
        """Covered bytes in each [start, end)."""
        return self._below(end) - self._below(start)

    def _below(self, address: I64) -> I64:
        whole = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.ends - self.starts)])
        count = np.searchsorted(self.starts, address, "right")
        last_end = np.concatenate([np.zeros(1, np.int64), self.ends])[count]
        return whole[count] - np.maximum(last_end - address, 0)

    def within(self, other: Coverage) -> Coverage:
        """The parts that both cover."""
        edges = np.unique(np.concatenate([self.starts, self.ends, other.starts, other.ends]))
        starts, ends = edges[:-1], edges[1:]
        both = (self.between(starts, ends) > 0) & (other.between(starts, ends) > 0)
        return Coverage(starts[both], ends[both])


@dataclass(frozen=True)
class Lines:
    """Resident bytes by line, and how each came to be."""

    bytes: dict[str, int]
    sources: dict[str, Source]


def lines(account: Account, snapshot: Snapshot) -> Lines:
    resident = _resident(snapshot.pages)
    # Both are the kernel's own pages, which RSS leaves out.
    vmas = tuple(vma for vma in parse_maps(snapshot.maps) if not vma.path.startswith(("[vvar", "[vsyscall")))
    sums: dict[str, int] = defaultdict(int)
    rows, starts, ends = _live(account, snapshot)
    covered = resident.between(starts, ends)
    for name, of_block in _block_lines(account, rows).items():
        sums[name] += int(covered[of_block].sum())
    _count_vmas(account, snapshot, vmas, resident, resident.within(_union(starts, ends)), sums)
    sources = {name: Source.INFERRED if name == RETAINED else Source.MEASURED for name in sums}
    return Lines({name: size for name, size in sums.items() if size}, sources)


def _resident(pages: U64) -> Coverage:
    categories = pages[:, 2]
    # The kernel's zero page stands for memory that was read and never written: RSS leaves it out.
    told = categories != 0
    keep = ~told | ((categories & _PRESENT != 0) & (categories & _ZERO_PAGE == 0))
    ranges = pages[keep].astype(np.int64)
    return _union(ranges[:, 0], ranges[:, 1])


def _union(starts: I64, ends: I64) -> Coverage:
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], ends[order]
    reach = np.concatenate([np.zeros(1, np.int64), np.maximum.accumulate(ends)])[: len(starts)]
    starts = np.maximum(starts, reach)
    real = ends > starts
    return Coverage(starts[real], ends[real])


def _live(account: Account, snapshot: Snapshot) -> tuple[I64, I64, I64]:
    """Rows, starts and ends of the blocks live at a snapshot, each byte in one of them only.

    Blocks overlap where a free was not seen: what came to the address later has it.
    """
    blocks = account.blocks
    rows = np.flatnonzero(account.ledger.live(snapshot.stamp) & (blocks.kind != BlockKind.RESERVED))
    starts = blocks.address[rows].astype(np.int64)
    order = np.argsort(starts, kind="stable")
    rows, starts = rows[order], starts[order]
    ends = starts + blocks.bytes[rows].astype(np.int64)
    reach = np.concatenate([np.zeros(1, np.int64), np.maximum.accumulate(ends)])[: len(starts)]
    starts = np.minimum(np.maximum(starts, reach), ends)
    return rows, starts, ends


def _block_lines(account: Account, rows: I64) -> dict[str, npt.NDArray[np.bool_]]:
    """Which of the rows are on which line: their owner's, or the program file's."""
    code = account.ledger.code[rows]
    mapped = account.blocks.kind[rows] == BlockKind.FILE
    found = {}
    for owner in dict.fromkeys(key.owner for key in account.keys):
        of_key = np.array([key.owner == owner for key in account.keys], np.bool_)
        own = of_key[code]
        found[owner] = own & ~mapped if is_counted(owner) else own
    counted = np.array([key.counted for key in account.keys], np.bool_)
    found[PROGRAM_FILE] = counted[code] & mapped
    return found


def _count_vmas(
    account: Account,
    snapshot: Snapshot,
    vmas: tuple[Vma, ...],
    resident: Coverage,
    in_blocks: Coverage,
    sums: dict[str, int],
) -> None:
    starts = np.array([vma.start for vma in vmas], np.int64)
    ends = np.array([vma.end for vma in vmas], np.int64)
    free = resident.between(starts, ends) - in_blocks.between(starts, ends)
    own = _own_ranges(account, snapshot)
    taken = _union(np.concatenate([in_blocks.starts, own.starts]), np.concatenate([in_blocks.ends, own.ends]))
    free_of_own = resident.between(starts, ends) - resident.within(taken).between(starts, ends)
    place = _Places(account, snapshot, vmas)
    mmapped = _mmapped_chunks(account, snapshot)
    chunk_slack = resident.within(mmapped).between(starts, ends) - resident.within(mmapped).within(taken).between(
        starts, ends
    )
    for index, vma in enumerate(vmas):
        sums[PROFILER] += int(free[index] - free_of_own[index])
        name = place.line(vma, index)
        if name is not None:
            sums[name] += int(free_of_own[index])
        elif vma.is_anonymous:
            # A mapping that malloc made for one block: only the block's own pages are known to be malloc's.
            sums[RETAINED] += int(chunk_slack[index])


def _own_ranges(account: Account, snapshot: Snapshot) -> Coverage:
    own = [mapping for mapping in account.trace.own if mapping.stamp <= snapshot.stamp]
    starts = np.array([mapping.address for mapping in own], np.int64)
    return _union(starts, starts + np.array([mapping.bytes for mapping in own], np.int64))


def _mmapped_chunks(account: Account, snapshot: Snapshot) -> Coverage:
    """The whole pages of blocks large enough to have a mapping of their own, their header included."""
    blocks, page = account.blocks, account.trace.header.page_bytes
    large = account.ledger.live(snapshot.stamp) & (blocks.kind == BlockKind.HEAP) & (blocks.bytes >= _MMAP_THRESHOLD)
    starts = blocks.address[large].astype(np.int64)
    ends = starts + blocks.bytes[large].astype(np.int64)
    return _union((starts - _CHUNK_HEADER) // page * page, -(-ends // page) * page)


class _Places:
    """What line a mapping's bytes are on where no block covers them."""

    def __init__(self, account: Account, snapshot: Snapshot, vmas: tuple[Vma, ...]) -> None:
        self._vmas = vmas
        self._profiler = _profiler_paths(account)
        self._programs = _program_paths(account)
        self._backends = _delegate_modules(account)
        self._bounds = [(m.base, m.base + m.bytes, m.path) for m in account.trace.modules]
        self._stacks = _stack_vmas(account, snapshot, vmas)
        self._malloc = _malloc_vmas(account, snapshot, vmas)

    def line(self, vma: Vma, index: int) -> str | None:
        if vma.path.startswith("[stack") or index in self._stacks:
            return STACKS
        if vma.path == "[heap]":
            return RETAINED
        module = vma.path if vma.is_file else self._zeroed_data_of(vma, index)
        if module is not None:
            return self._module_line(module)
        if vma.path.startswith("[vdso"):
            return OTHER_LIBRARIES
        return RETAINED if index in self._malloc else None

    def _module_line(self, path: str) -> str:
        if path in self._profiler:
            return PROFILER
        if path in self._programs:
            return PROGRAM_FILE
        backend = self._backends.get(path)
        return f"libraries of {backend}" if backend else OTHER_LIBRARIES

    def _zeroed_data_of(self, vma: Vma, index: int) -> str | None:
        """The module whose .bss an anonymous mapping is: it lies in the module, or right behind its data."""
        if not vma.is_anonymous or index in self._malloc:
            return None
        for base, end, path in self._bounds:
            if base <= vma.start < end:
                return path
        before = self._vmas[index - 1] if index else None
        follows = before is not None and before.end == vma.start and before.is_file and "w" in before.permissions
        return before.path if before is not None and follows else None


def _profiler_paths(account: Account) -> frozenset[str]:
    """The agent, the hooks library and the trace itself, which is mapped while it is written."""
    keys = ("agent.path", "hooks.path", "trace.path")
    return frozenset(str(Path(value).absolute()) for key, value in account.trace.notes if key in keys)


def _program_paths(account: Account) -> frozenset[str]:
    """Files that hold programs or their data: those that were named, and those that segments were mapped from."""
    found = {value for key, value in account.trace.notes if key.startswith("program.") and key.endswith(".path")}
    found |= {span.scope.name for span in account.spans if span.scope.kind is ScopeKind.PROGRAM_LOAD}
    blocks = account.blocks
    for row in account.segments.rows.tolist():
        if row >= 0 and blocks.file[row] >= 0:
            found.add(account.trace.file_maps[int(blocks.file[row])].path)
    return frozenset(found)


def _delegate_modules(account: Account) -> dict[str, str]:
    """Modules by path that appeared in a delegate's scope, with its backend."""
    table = account.table
    found: dict[str, str] = {}
    for module in account.trace.modules:
        holder = int(table.delegate[module.scope]) if module.scope < len(table.delegate) else 0
        if holder:
            found.setdefault(module.path, table.scopes[holder].name)
    return found


def _stack_vmas(account: Account, snapshot: Snapshot, vmas: tuple[Vma, ...]) -> frozenset[int]:
    pointers = [
        thread.stack_pointer
        for thread in account.trace.threads
        if thread.begin_stamp <= snapshot.stamp and (thread.end_stamp is None or thread.end_stamp > snapshot.stamp)
    ]
    return frozenset(index for index in _indices(vmas, np.array(pointers, np.int64)) if vmas[index].is_anonymous)


def _malloc_vmas(account: Account, snapshot: Snapshot, vmas: tuple[Vma, ...]) -> frozenset[int]:
    """Anonymous mappings that an allocator carves blocks from: those that hold small live blocks, and arenas
    that hold or held any."""
    blocks = account.blocks
    begun = (blocks.kind == BlockKind.HEAP) & (blocks.begin <= np.uint64(snapshot.stamp))
    live = account.ledger.live(snapshot.stamp)
    small = blocks.address[begun & live & (blocks.bytes < _MMAP_THRESHOLD)].astype(np.int64)
    ever = blocks.address[begun].astype(np.int64)
    carved = {index for index in _indices(vmas, small) if vmas[index].is_anonymous}
    arenas = {i for i in _indices(vmas, ever) if vmas[i].is_anonymous and vmas[i].start % _ARENA_ALIGNMENT == 0}
    return frozenset(carved | arenas)


def _indices(vmas: tuple[Vma, ...], addresses: I64) -> Iterable[int]:
    """The mappings that hold any of the addresses."""
    starts = np.array([vma.start for vma in vmas], np.int64)
    ends = np.array([vma.end for vma in vmas], np.int64)
    index = np.searchsorted(starts, addresses, "right") - 1
    index = index[index >= 0]
    held = addresses[np.searchsorted(starts, addresses, "right") > 0] < ends[index]
    return np.unique(index[held]).tolist()  # type: ignore[no-any-return]
