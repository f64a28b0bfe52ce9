"""Which delegate instances share an object, told from what the trace saw of it.

A description says which blocks belong to an object that instances may share, such as XNNPACK's workspace or
weight cache. Whether they do share it depends on options that no trace holds, so it follows from evidence:

- a block of instance A that is freed at work of instance B belongs to both (B made it larger, or was its
  last user);
- without that, blocks of A and B belong to two objects;
- an instance that executes without a block of its own uses the one that lives: that of its own method, else
  of its own program, else of any, if there is just one such group.

A weight cache holds one entry per weight, so its entries live together. All instances share it that packed less
than half of what they were handed into blocks of their own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from etmem.analysis.lookup import I64
from etmem.analysis.owners import I32, Ownership, SharedObject
from etmem.analysis.scopes import Instance, ScopeTable, end_of
from etmem.analysis.segments import Segments
from etmem.analysis.threads import Attributed, Threads
from etmem.model.words import Category
from etmem.trace.tables import Blocks, DelegateStage, SegmentType

WEIGHT_CACHE = "weight_cache"


@dataclass
class _Groups:
    """Disjoint sets of instances (by index)."""

    parent: dict[int, int] = field(default_factory=dict)

    def find(self, one: int) -> int:
        root = self.parent.setdefault(one, one)
        return one if root == one else self.find(root)

    def join(self, one: int, other: int) -> None:
        self.parent[max(self.find(one), self.find(other))] = min(self.find(one), self.find(other))

    def members(self, one: int) -> frozenset[int]:
        return frozenset(other for other in list(self.parent) if self.find(other) == self.find(one))


@dataclass(frozen=True)
class Sharing:
    partners: dict[int, frozenset[int]]
    """By instance index, all instances that share an object with it, itself left out."""
    rows: I64
    """Blocks that belong to several instances."""


def resolve(
    blocks: Blocks,
    who: Attributed,
    threads: Threads,
    ownership: Ownership,
    segments: Segments,
) -> Sharing:
    partners: dict[int, set[int]] = defaultdict(set)
    shared: list[I64] = [np.empty(0, np.int64)]
    table = threads.table
    for one in ownership.shared:
        owner = table.instance[who.scope[one.rows]]
        rows, owner = one.rows[owner >= 0], owner[owner >= 0]
        if one.name == WEIGHT_CACHE:
            groups = _cache_groups(one, table, owner, blocks, ownership, segments)
        else:
            groups = _Evidence(blocks, threads, rows, owner).groups(_of_backend(table, one.backend))
        for index in list(groups.parent):
            partners[index] |= groups.members(index) - {index}
        several = np.array([len(groups.members(index)) > 1 for index in owner.tolist()], np.bool_)
        shared.append(rows[several])
    return Sharing({index: frozenset(found) for index, found in partners.items()}, np.concatenate(shared))


def _of_backend(table: ScopeTable, backend: str) -> list[int]:
    return [index for index, instance in enumerate(table.instances) if instance.backend == backend]


def _cache_groups(
    one: SharedObject, table: ScopeTable, owner: I32, blocks: Blocks, held: Ownership, segments: Segments
) -> _Groups:
    groups = _Groups()
    users = set(owner.tolist())
    for index in _of_backend(table, one.backend):
        instance = table.instances[index]
        handed = sum(segment.bytes for segment, _ in segments.of(instance, SegmentType.NAMED, SegmentType.BACKEND))
        if 2 * _packed_outside(one, instance, blocks, held) < handed:
            users.add(index)
    for user in users:
        groups.join(user, min(users))
    return groups


def _packed_outside(one: SharedObject, instance: Instance, blocks: Blocks, held: Ownership) -> int:
    """Bytes of the packed weights that an instance has outside of a cache."""
    mine = [
        number
        for number, key in enumerate(held.keys)
        if key.instance == instance and key.category is Category.PACKED_WEIGHTS
    ]
    rows = np.setdiff1d(np.flatnonzero(np.isin(held.code, mine)), one.rows)
    return int((blocks.bytes[rows] * blocks.count[rows]).sum())


@dataclass(frozen=True)
class _Evidence:
    blocks: Blocks
    threads: Threads
    rows: I64
    owner: I32

    def groups(self, instances: list[int]) -> _Groups:
        groups = _Groups()
        for index, freer in zip(self.owner.tolist(), self._freed_by(), strict=True):
            groups.find(index)
            if freer in instances:
                groups.join(index, freer)
        owners = set(self.owner.tolist())
        for index in instances:
            if index not in owners:
                self._join_user(index, groups)
        return groups

    def _freed_by(self) -> list[int]:
        """For each block, the instance at whose work it was freed, or -1."""
        blocks, rows = self.blocks, self.rows
        thread = blocks.freed_thread[rows]
        scope = self.threads.attribute(blocks.freed_scope[rows], thread, blocks.end[rows]).scope
        # A block that merely vanished ends where another takes its address: that says nothing.
        freers: list[int] = np.where(thread != 0, self.threads.table.instance[scope], -1).tolist()
        return freers

    def _join_user(self, index: int, groups: _Groups) -> None:
        executes = self.threads.table.delegate_scopes(index, DelegateStage.EXECUTE)
        if not executes:
            return
        # The last one: in the first inference it may run before anybody has allocated.
        begin, end = executes[-1].begin_stamp, end_of(executes[-1])
        live = (self.blocks.begin[self.rows] <= end) & (self.blocks.end[self.rows] > begin)
        living = set(self.owner[live].tolist())
        for near in _NEARNESS:
            me = self.threads.table.instances[index]
            found = {other for other in living if near(me, self.threads.table.instances[other])}
            if found:
                if len({groups.find(other) for other in found}) == 1:
                    groups.join(index, min(found))
                return


_NEARNESS: tuple[Callable[[Instance, Instance], bool], ...] = (
    lambda one, other: (one.program, one.method) == (other.program, other.method),
    lambda one, other: one.program == other.program,
    lambda _one, _other: True,
)
