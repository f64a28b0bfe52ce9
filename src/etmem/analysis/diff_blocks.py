"""Blocks by size, and what operators of delegates hold, at the peaks: all of them from two traces, the largest
ones from two summaries."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from etmem.analysis.diff_model import BlockChange, Figures, OperatorChange
from etmem.analysis.diff_moments import add_up, different
from etmem.model.words import Category

if TYPE_CHECKING:
    from etmem.analysis.context import Context
    from etmem.analysis.lookup import I64
    from etmem.model.summary import Summary

_LIMIT = 20
"""Rows of largest blocks that a summary lists per peak."""
_PEAKS = ("inference", "load")


@dataclass(frozen=True)
class BlockGroup:
    """Equal blocks that are live at one peak."""

    at: str
    owner: str
    category: Category
    operator: str | None
    requested_bytes: int
    file: bool
    count: int


def all_blocks(context: Context) -> tuple[BlockGroup, ...]:
    """Every counted block that is live at the peaks of a trace."""
    import numpy as np

    found: Counter[BlockGroup] = Counter()
    for at in _PEAKS:
        stamp = context.peak_stamps.get(at)
        if stamp is None:
            continue
        rows = np.flatnonzero(context.ledger.live(stamp) & context.ledger.counted)
        operators = _operators(context, rows)
        for row in rows.tolist():
            key, size = context.keys[context.ledger.code[row]], int(context.blocks.bytes[row])
            is_file = bool(context.file_bytes[row])
            found[BlockGroup(at, key.owner, key.category, operators.get(row), size, is_file, 1)] += 1
    return tuple(replace(group, count=count) for group, count in found.items())


def largest_blocks(summary: Summary) -> tuple[BlockGroup, ...]:
    return tuple(
        BlockGroup(row.at, row.owner, row.category, None, row.requested_bytes, row.file, row.count)
        for row in summary.largest_blocks
    )


def block_changes(a: Sequence[BlockGroup], b: Sequence[BlockGroup], *, complete: bool) -> tuple[BlockChange, ...]:
    """Sizes of which one run has more than the other, the largest change first.

    Of incomplete lists only what is larger than where either list ends can be compared.
    """
    if not complete:
        floors = {at: max(_floor(a, at), _floor(b, at)) for at in _PEAKS}
        a, b = (tuple(g for g in groups if g.requested_bytes > floors[g.at]) for groups in (a, b))
    a, b = _alike(a, b)
    old, new = (_counts(groups) for groups in (a, b))
    found = []
    for group in dict.fromkeys((*old, *new)):
        x, y = old[group], new[group]
        if x != y:
            found.append(
                BlockChange(
                    at=group.at,
                    owner=group.owner,
                    category=group.category,
                    operator=group.operator,
                    requested_bytes=group.requested_bytes,
                    file=group.file,
                    a_count=x,
                    b_count=y,
                    delta_bytes=(y - x) * group.requested_bytes,
                )
            )
    return tuple(sorted(found, key=lambda row: (_PEAKS.index(row.at), -abs(row.delta_bytes), -row.requested_bytes)))


def operator_changes(a: Sequence[BlockGroup], b: Sequence[BlockGroup]) -> tuple[OperatorChange, ...]:
    """Where both traces tell operators; empty where one does not."""
    if not (_tells_operators(a) and _tells_operators(b)):
        return ()
    found = [
        OperatorChange(at, owner, operator or "", category, x, y, y.total - x.total)
        for (at, owner, operator, category), x, y in different(_by_operator(a), _by_operator(b))
    ]
    return tuple(sorted(found, key=lambda row: (_PEAKS.index(row.at), -abs(row.delta_bytes), row.operator)))


def _by_operator(groups: Iterable[BlockGroup]) -> dict[tuple[str, str, str | None, Category], Figures]:
    rows = []
    for group in groups:
        if group.operator is not None:
            count = group.requested_bytes * group.count
            figures = Figures(0, count, group.count) if group.file else Figures(count, 0, group.count)
            rows.append(((group.at, group.owner, group.operator, group.category), figures))
    return add_up(rows)


def _counts(groups: Iterable[BlockGroup]) -> Counter[BlockGroup]:
    counts: Counter[BlockGroup] = Counter()
    for group in groups:
        counts[replace(group, count=0)] += group.count
    return counts


def _alike(a: Sequence[BlockGroup], b: Sequence[BlockGroup]) -> tuple[Sequence[BlockGroup], Sequence[BlockGroup]]:
    """Without operators where one side's libraries could not be read: the same block is not two blocks."""
    if _tells_operators(a) == _tells_operators(b):
        return a, b
    return _nameless(a), _nameless(b)


def _nameless(groups: Sequence[BlockGroup]) -> tuple[BlockGroup, ...]:
    return tuple(replace(group, operator=None) for group in groups)


def _tells_operators(groups: Sequence[BlockGroup]) -> bool:
    return any(group.operator is not None for group in groups)


def _floor(groups: Sequence[BlockGroup], at: str) -> int:
    mine = [group.requested_bytes for group in groups if group.at == at]
    return min(mine) if len(mine) >= _LIMIT else 0


def _operators(context: Context, rows: I64) -> dict[int, str]:
    """The operators of the delegates' blocks, where a description tells them by the call stack."""
    from etmem.delegates import Description

    by_backend: dict[str, list[int]] = defaultdict(list)
    for row in rows.tolist():
        owner = context.keys[context.ledger.code[row]].owner
        if owner.startswith("delegate:"):
            by_backend[owner.removeprefix("delegate:")].append(row)
    found = {}
    for backend, mine in by_backend.items():
        description = context.descriptions.get(backend)
        if not isinstance(description, Description):
            continue
        for row in mine:
            operator = description.operator(context.call_stack(row), context.function(row))
            if operator:
                found[row] = operator
    return found
