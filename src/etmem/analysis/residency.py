"""Where the resident pages of a snapshot belong: each resident byte on one line, or on none.

A live block has exactly the resident bytes that it covers. What no block covers goes by its mapping: the
program's file, a delegate's or another library, a stack, the profiler, or pages that malloc keeps. What is
left has no line: it is unaccounted.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from etmem.analysis.context import Account
from etmem.analysis.coverage import Coverage, Remainder, union
from etmem.analysis.lookup import I64
from etmem.analysis.modules import Vma, parse_maps
from etmem.analysis.places import BEFORE, MMAP_THRESHOLD, PROGRAM_FILE, RETAINED, Places
from etmem.model.words import PROFILER, Category, Source
from etmem.trace.tables import U64, BlockKind, Snapshot

_PRESENT, _ZERO_PAGE = 1 << 3, 1 << 5
_CHUNK_HEADER = 16
ATTACHED = "attach"
"""The snapshot that a recording of a running process begins with."""
_OF_THE_FILE = (Category.PROGRAM, Category.CONSTANTS, Category.ORIGINAL_WEIGHTS)
"""A delegate's other file mappings are its own, such as a cache of packed weights."""


@dataclass(frozen=True)
class Lines:
    """Resident bytes by line, and how each came to be."""

    bytes: dict[str, int]
    sources: dict[str, Source]


def lines(account: Account, snapshot: Snapshot) -> Lines:
    resident = resident_pages(snapshot.pages)
    # The kernel's own pages, which RSS leaves out.
    vmas = tuple(vma for vma in parse_maps(snapshot.maps) if not vma.path.startswith("[vvar"))
    sums: dict[str, int] = defaultdict(int)
    rows, starts, ends = _live(account, snapshot)
    covered = resident.between(starts, ends)
    for name, of_block in _block_lines(account, rows).items():
        sums[name] += int(covered[of_block].sum())
    _count_vmas(account, snapshot, vmas, Remainder(resident, Coverage(starts, ends)), sums)
    sums[RETAINED] = min(sums[RETAINED], _most_retained(account, snapshot))
    sources = {name: Source.INFERRED if name == RETAINED else Source.MEASURED for name in sums}
    return Lines({name: size for name, size in sums.items() if size}, sources)


def resident_pages(pages: U64) -> Coverage:
    """The pages of a snapshot that RSS counts."""
    categories = pages[:, 2]
    # The kernel's zero page stands for memory that was read and never written: RSS leaves it out.
    told = categories != 0
    keep = ~told | ((categories & _PRESENT != 0) & (categories & _ZERO_PAGE == 0))
    ranges = pages[keep].astype(np.int64)
    return union(ranges[:, 0], ranges[:, 1])


def _live(account: Account, snapshot: Snapshot) -> tuple[I64, I64, I64]:
    """Rows, starts and ends of the blocks live at a snapshot, each byte in one of them only.

    Blocks overlap where a free was not seen: one that begins inside another has taken its place.
    """
    blocks = account.blocks
    rows = np.flatnonzero(account.ledger.live(snapshot.stamp) & (blocks.kind != BlockKind.RESERVED))
    starts = blocks.address[rows].astype(np.int64)
    order = np.argsort(starts, kind="stable")
    rows, starts = rows[order], starts[order]
    ends = starts + blocks.bytes[rows].astype(np.int64)
    ends[:-1] = np.minimum(ends[:-1], starts[1:])
    return rows, starts, ends


def _block_lines(account: Account, rows: I64) -> dict[str, npt.NDArray[np.bool_]]:
    """Which of the rows are on which line: their owner's, or the program file's."""
    code = account.ledger.code[rows]
    mapped = account.blocks.kind[rows] == BlockKind.FILE
    of_file = np.array([key.counted and key.category in _OF_THE_FILE for key in account.keys], np.bool_)[code] & mapped
    found = {PROGRAM_FILE: of_file}
    for owner in dict.fromkeys(key.owner for key in account.keys):
        found[owner] = np.array([key.owner == owner for key in account.keys], np.bool_)[code] & ~of_file
    return found


def _count_vmas(
    account: Account, snapshot: Snapshot, vmas: tuple[Vma, ...], uncovered: Remainder, sums: dict[str, int]
) -> None:
    """Adds what no block covers to the lines of the mappings that it lies in."""
    starts = np.array([vma.start for vma in vmas], np.int64)
    ends = np.array([vma.end for vma in vmas], np.int64)
    own = _own_ranges(account, snapshot)
    profilers = _per_vma(uncovered, own, starts, ends)
    chunks = _mmapped_chunks(account, snapshot)
    slack = _per_vma(uncovered, chunks.outside(own), starts, ends)
    older = _per_vma(uncovered, _resident_before(account).outside(own).outside(chunks), starts, ends)
    rest = uncovered.between(starts, ends) - profilers
    places = Places(account, snapshot, vmas)
    sums[PROFILER] += int(profilers.sum())
    for index, vma in enumerate(vmas):
        name = places.line(vma, index)
        if name is not None:
            sums[name] += int(rest[index])
        elif vma.is_anonymous:
            # A mapping that malloc made for one block: only the block's own pages are known to be malloc's.
            sums[RETAINED] += int(slack[index])
            sums[BEFORE] += int(older[index])


def _per_vma(uncovered: Remainder, ranges: Coverage, starts: I64, ends: I64) -> I64:
    """The uncovered bytes of the ranges in each mapping."""
    pieces = ranges.split(np.sort(np.concatenate([starts, ends])))
    index = np.searchsorted(starts, pieces.starts, "right") - 1
    inside = (index >= 0) & (pieces.starts < ends[np.maximum(index, 0)]) if len(ends) else np.zeros(0, np.bool_)
    found = np.zeros(len(starts), np.int64)
    np.add.at(found, index[inside], uncovered.between(pieces.starts[inside], pieces.ends[inside]))
    return found


def _most_retained(account: Account, snapshot: Snapshot) -> int:
    """What libc can keep by its own figures, and 5 %: what it has from the system less what is asked of it.

    More than that is somebody else's memory in malloc's mappings, and stays unaccounted.
    """
    held = snapshot.malloc_arena_bytes + snapshot.malloc_mmap_bytes
    if not held:  # another allocator serves malloc
        return snapshot.rss_bytes
    blocks = account.blocks
    asked = blocks.bytes[account.ledger.live(snapshot.stamp) & (blocks.kind == BlockKind.HEAP)]
    return max(0, held - int(asked.sum())) * 105 // 100


def _own_ranges(account: Account, snapshot: Snapshot) -> Coverage:
    own = [mapping for mapping in account.trace.own if mapping.stamp <= snapshot.stamp]
    starts = np.array([mapping.address for mapping in own], np.int64)
    return union(starts, starts + np.array([mapping.bytes for mapping in own], np.int64))


def _resident_before(account: Account) -> Coverage:
    """The pages that an attached recording found; none where the process was recorded from its start."""
    found = next((s for s in account.trace.snapshots if s.name == ATTACHED), None)
    return resident_pages(found.pages if found is not None else np.zeros((0, 3), np.uint64))


def _mmapped_chunks(account: Account, snapshot: Snapshot) -> Coverage:
    """The whole pages of blocks large enough to have a mapping of their own, their header included."""
    blocks, page = account.blocks, account.trace.header.page_bytes
    large = account.ledger.live(snapshot.stamp) & (blocks.kind == BlockKind.HEAP) & (blocks.bytes >= MMAP_THRESHOLD)
    starts = blocks.address[large].astype(np.int64)
    ends = starts + blocks.bytes[large].astype(np.int64)
    return union((starts - _CHUNK_HEADER) // page * page, -(-ends // page) * page)
