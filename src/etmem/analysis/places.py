"""What the mappings of a process are: the program's file, libraries, stacks, the profiler's, malloc's."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from etmem.analysis.context import Account
from etmem.analysis.descriptions import described
from etmem.analysis.modules import Vma
from etmem.model.words import PROFILER
from etmem.trace.tables import U64, BlockKind, ScopeKind, Snapshot

PROGRAM_FILE = "program file"
OTHER_LIBRARIES = "other libraries"
STACKS = "stacks"
RETAINED = "retained by malloc"
BEFORE = "before the recording"
"""Anonymous pages that were resident when an attached recording began, and that no block has claimed since."""

_ARENA_ALIGNMENT = 64 << 20
"""glibc's thread arenas start at multiples of HEAP_MAX_SIZE."""
MMAP_THRESHOLD = 128 << 10
"""glibc gives no block below this its own mapping."""


class Places:
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
    """Modules by path, with the backend in whose scope they appeared, or whose description names them."""
    table = account.table
    found: dict[str, str] = {}
    for module in account.trace.modules:
        holder = int(table.delegate[module.scope]) if module.scope < len(table.delegate) else 0
        if holder:
            found.setdefault(module.path, table.scopes[holder].name)
    for backend, description in described(account.instances, account.descriptions):
        for module in account.trace.modules:
            if description.owns_library(module.path):
                found.setdefault(module.path, backend)
    return found


def _stack_vmas(account: Account, snapshot: Snapshot, vmas: tuple[Vma, ...]) -> frozenset[int]:
    pointers = [
        thread.stack_pointer
        for thread in account.trace.threads
        if thread.begin_stamp <= snapshot.stamp and (thread.end_stamp is None or thread.end_stamp > snapshot.stamp)
    ]
    return frozenset(index for index in _indices(vmas, np.array(pointers, np.uint64)) if vmas[index].is_anonymous)


def _malloc_vmas(account: Account, snapshot: Snapshot, vmas: tuple[Vma, ...]) -> frozenset[int]:
    """Anonymous mappings that an allocator carves blocks from: those that hold small live blocks, and arenas
    that hold or held any."""
    blocks = account.blocks
    begun = (blocks.kind == BlockKind.HEAP) & (blocks.begin <= np.uint64(snapshot.stamp))
    live = account.ledger.live(snapshot.stamp)
    small = blocks.address[begun & live & (blocks.bytes < MMAP_THRESHOLD)]
    ever = blocks.address[begun]
    carved = {index for index in _indices(vmas, small) if vmas[index].is_anonymous}
    arenas = {i for i in _indices(vmas, ever) if vmas[i].is_anonymous and vmas[i].start % _ARENA_ALIGNMENT == 0}
    return frozenset(carved | arenas)


_PIECE = 1 << 20


def _indices(vmas: tuple[Vma, ...], addresses: U64) -> list[int]:
    """The mappings that hold any of the addresses, which are looked at piece by piece: there may be millions."""
    if not vmas:
        return []
    starts = np.array([vma.start for vma in vmas], np.int64)
    ends = np.array([vma.end for vma in vmas], np.int64)
    found: set[int] = set()
    for at in range(0, len(addresses), _PIECE):
        piece = addresses[at : at + _PIECE].astype(np.int64)
        index = np.searchsorted(starts, piece, "right") - 1
        held = (index >= 0) & (piece < ends[index])
        found.update(np.flatnonzero(np.bincount(index[held], minlength=1)).tolist())
    return sorted(found)
