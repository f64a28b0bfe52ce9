"""Where memory was asked for: the path of scopes of every block and, where recorded, its call stack.

One row stands for all blocks of one path; flame graphs, pprof, speedscope and collapsed stacks are made of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

import numpy as np

from etmem.analysis.context import Context
from etmem.analysis.lookup import I64, alike
from etmem.delegates.description import Description
from etmem.model.words import Category
from etmem.report.demangle import demangle
from etmem.report.scope_names import ScopeNames

UNKNOWN = "[unknown]"
AT = ("load", "inference", "steady")
"""The moments of ``Weights.live``."""


@dataclass(frozen=True)
class Weight:
    bytes: int
    blocks: int


@dataclass(frozen=True)
class StackRow:
    """``scope`` and ``native`` are indices in ``Stacks.frames``, outermost first; ``native`` may be empty."""

    scope: tuple[int, ...]
    native: tuple[int, ...]
    key: int
    """Index in ``Account.keys``."""
    file: bool
    live: tuple[Weight, ...]
    """At the peaks of load and of inference, and at the end of the last inference; see ``AT``."""
    allocated: Weight


@dataclass(frozen=True)
class Stacks:
    frames: tuple[str, ...]
    rows: tuple[StackRow, ...]


@dataclass(frozen=True)
class Group:
    """Blocks of one scope, call stack, key and kind: ``row`` is the first of them."""

    scope: int
    stack: int
    key: int
    file: bool
    row: int


@dataclass(frozen=True)
class Groups:
    """Some blocks and the group that each is in; ``rows`` and ``member`` are of one length."""

    rows: I64
    groups: tuple[Group, ...]
    member: I64
    """Index in ``groups``."""


def path_of(row: StackRow) -> tuple[int, ...]:
    """The scopes, in them the call stack, in that what the memory is."""
    return (*row.scope[:-1], *row.native, row.scope[-1])


def stacks(context: Context, counted: Groups) -> Stacks:
    """All blocks that peaks count."""
    weights = _weights(context, counted)
    frames: dict[str, int] = {}
    names = ScopeNames(context)
    found: dict[tuple[object, ...], I64] = {}
    for index, group in enumerate(counted.groups):
        scope = tuple(frames.setdefault(text, len(frames)) for text in scope_path(context, names, group))
        native = tuple(frames.setdefault(text, len(frames)) for text in native_path(context, group.stack))
        place = (scope, native, group.key, group.file)
        found[place] = found.get(place, 0) + weights[index]
    return Stacks(tuple(frames), tuple(_row(place, sums) for place, sums in found.items()))


def counted_groups(context: Context) -> Groups:
    """Of all blocks that peaks count."""
    return grouped(context, np.flatnonzero(context.ledger.counted))


def grouped(context: Context, rows: I64) -> Groups:
    """The groups that some rows fall into."""
    columns = (
        context.who.scope[rows],
        context.blocks.stack[rows],
        context.ledger.code[rows],
        context.file_bytes[rows] > 0,
    )
    distinct, member = alike(*columns)
    first = np.empty(distinct.shape[1], np.int64)
    first[member[::-1]] = np.arange(len(rows))[::-1]
    parts = zip(*distinct.tolist(), rows[first].tolist(), strict=True)
    return Groups(rows, tuple(Group(a, b, c, bool(d), row) for a, b, c, d, row in parts), member)


def scope_path(context: Context, names: ScopeNames, group: Group) -> tuple[str, ...]:
    """Phase, instruction, delegate and tags; then the operator that the backend's description finds; then what
    the memory is."""
    key = context.keys[group.key]
    operator = delegate_operator(context, group)
    category = names.category(key.owner, Category(key.category))
    return (*names.path(group.scope), *([operator] if operator else []), category)


def native_path(context: Context, stack: int) -> tuple[str, ...]:
    addresses = context.trace.stacks.get(stack, ())
    names = context.symbolizer.stack(addresses)
    found = [_frame(context, name, address) for name, address in zip(names, addresses, strict=True)]
    return tuple(reversed(found))


def _frame(context: Context, name: str, address: int) -> str:
    if name:
        return demangle(name)
    piece = context.symbolizer.code.at(address - 1)
    return f"[{PurePath(piece.path).name}]" if piece is not None else UNKNOWN


def delegate_operator(context: Context, group: Group) -> str | None:
    """The operator that a backend's description finds in the call stack."""
    owner = context.keys[group.key].owner
    description = context.descriptions.get(owner.partition(":")[2])
    addresses = context.trace.stacks.get(group.stack)
    if not isinstance(description, Description) or not addresses:
        return None
    return description.operator(context.symbolizer.stack(addresses), context.function(group.row))


def _weights(context: Context, counted: Groups) -> I64:
    """Per group: bytes and number, at each moment of ``AT`` and of all that was allocated; shape (groups, 8)."""
    rows, member, groups = counted.rows, counted.member, len(counted.groups)
    sizes, count = context.ledger.both[rows], context.blocks.count[rows]
    columns = []
    for live in (*(_live(context, at, rows) for at in AT), context.fresh[rows]):
        columns.append(np.bincount(member[live], sizes[live], groups))
        columns.append(np.bincount(member[live], count[live], groups))
    return np.rint(np.stack(columns, axis=1)).astype(np.int64)


def _live(context: Context, at: str, rows: I64) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    stamp = context.peak_stamps.get(at)
    if stamp is None:
        return np.zeros(len(rows), np.bool_)
    return context.ledger.live(stamp)[rows]


def _row(place: tuple[object, ...], sums: I64) -> StackRow:
    scope, native, key, file = place
    figures: Sequence[int] = sums.tolist()
    pairs = [Weight(figures[at], figures[at + 1]) for at in range(0, len(figures), 2)]
    return StackRow(scope, native, key, file, tuple(pairs[:-1]), pairs[-1])  # type: ignore[arg-type]
