"""Whose memory it is that the data loader handed out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from etmem.analysis.keys import Key
from etmem.analysis.lookup import I64, containing
from etmem.analysis.scopes import Instance, ScopeTable, end_of
from etmem.model.words import EXECUTORCH, Category, delegate
from etmem.trace.tables import Blocks, DelegateStage, Scope, ScopeKind, Segment, SegmentType, Trace

_RUNTIME = {
    SegmentType.PROGRAM: Category.PROGRAM,
    SegmentType.CONSTANT: Category.CONSTANTS,
    SegmentType.EXTERNAL: Category.CONSTANTS,
    SegmentType.NAMED: Category.CONSTANTS,
    SegmentType.MUTABLE: Category.METADATA,
}


@dataclass(frozen=True)
class Segments:
    """The trace's segments with, for each, its block's row (-1: in none) and the key it stands for."""

    segments: tuple[Segment, ...]
    rows: I64
    keys: tuple[Key, ...]

    def block_keys(self) -> dict[int, Key]:
        """The key of each block that holds segments: where it holds several, of those with most bytes."""
        by_row: dict[int, list[tuple[Segment, Key]]] = defaultdict(list)
        for segment, row, key in zip(self.segments, self.rows.tolist(), self.keys, strict=True):
            if row >= 0:
                by_row[row].append((segment, key))
        return {row: _winner(held) for row, held in by_row.items()}

    def of(self, instance: Instance, *types: SegmentType) -> tuple[tuple[Segment, int], ...]:
        """An instance's segments of some types, with their blocks' rows."""
        return tuple(
            (segment, row)
            for segment, row, key in zip(self.segments, self.rows.tolist(), self.keys, strict=True)
            if key.instance == instance and segment.type in types
        )


def resolve(trace: Trace, blocks: Blocks, table: ScopeTable) -> Segments:
    addresses = np.array([segment.address for segment in trace.segments], np.uint64)
    stamps = np.array([segment.stamp for segment in trace.segments], np.uint64)
    inits = _inits_by_thread(table)
    keys = tuple(_key(segment, table, inits) for segment in trace.segments)
    return Segments(trace.segments, containing(blocks, addresses, stamps), keys)


def _key(segment: Segment, table: ScopeTable, inits: Mapping[int, list[Scope]]) -> Key:
    if segment.type is SegmentType.BACKEND:
        return _blob_key(segment, table, inits)
    holder = int(table.delegate[segment.scope]) if segment.scope < len(table.delegate) else 0
    # A data map loads a delegate's named data as a constant, inside the delegate's scope.
    if holder and segment.type in (SegmentType.NAMED, SegmentType.CONSTANT, SegmentType.EXTERNAL):
        return _original(table, table.scopes[holder])
    return Key(EXECUTORCH, None, _RUNTIME[segment.type])


def _blob_key(segment: Segment, table: ScopeTable, inits: Mapping[int, list[Scope]]) -> Key:
    """A blob is loaded before its delegate's init: it belongs to the next one on its thread."""
    scope = table.scopes.get(segment.scope)
    if scope is not None:
        phase = table.scopes.get(int(table.phase[scope.id]), scope)
        for init in inits.get(scope.thread, ()):
            if segment.stamp < init.begin_stamp < end_of(phase):
                return _original(table, init)
    if segment.name:
        return Key(delegate(segment.name), None, Category.ORIGINAL_WEIGHTS)
    return Key(EXECUTORCH, None, Category.PROGRAM)


def _original(table: ScopeTable, scope: Scope) -> Key:
    index = int(table.instance[scope.id])
    instance = table.instances[index] if index >= 0 else None
    return Key(delegate(scope.name), instance, Category.ORIGINAL_WEIGHTS)


def _inits_by_thread(table: ScopeTable) -> dict[int, list[Scope]]:
    found: dict[int, list[Scope]] = defaultdict(list)
    for scope in sorted(table.scopes.values(), key=lambda scope: scope.begin_stamp):
        if scope.kind is ScopeKind.DELEGATE and scope.b == DelegateStage.INIT:
            found[scope.thread].append(scope)
    return found


def _winner(held: list[tuple[Segment, Key]]) -> Key:
    # Each piece once: a named piece is also the constant that backs it, and methods may share one.
    pieces = {segment.address: (segment.bytes, key) for segment, key in held}
    handed_on = [(address, size) for address, (size, key) in pieces.items() if key.owner != EXECUTORCH]
    votes: dict[tuple[str, Category], int] = defaultdict(int)
    for address, (size, key) in pieces.items():
        inside = 0
        if key.owner == EXECUTORCH:
            inside = sum(part for start, part in handed_on if address <= start < address + size)
        votes[key.owner, key.category] += size - inside
    owner, category = max(votes, key=lambda vote: votes[vote])
    instances = {key.instance for _, key in pieces.values() if (key.owner, key.category) == (owner, category)}
    return Key(owner, instances.pop() if len(instances) == 1 else None, category)
