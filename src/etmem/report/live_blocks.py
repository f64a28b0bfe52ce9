"""The blocks that a page can list at any moment: the largest one by one, equal ones together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from etmem.analysis.context import Context
from etmem.analysis.lookup import I64
from etmem.model.words import HOST, Category
from etmem.report.scope_names import ScopeNames
from etmem.report.stacks import grouped, scope_path
from etmem.trace.tables import NEVER

MOST = 20_000
"""Blocks that are listed. What is smaller shows as the rest of its owner's bytes."""
FOREVER = -1


@dataclass(frozen=True)
class LiveBlocks:
    """Columns of equal length, by begin. A block is live at s if ``begin <= s`` and ``end`` is later or -1."""

    begin: tuple[int, ...]
    end: tuple[int, ...]
    bytes: tuple[int, ...]
    key: tuple[int, ...]
    file: tuple[int, ...]
    place: tuple[int, ...]
    """Index in ``places``."""
    places: tuple[tuple[str, ...], ...]
    """Scope paths, outermost first."""


def live_blocks(context: Context, most: int = MOST) -> LiveBlocks:
    """Of all that peaks count and of the caller's inputs and outputs."""
    rows = _largest(context, most)
    names = ScopeNames(context)
    found = grouped(context, rows)
    places: dict[tuple[str, ...], int] = {}
    of_group = [places.setdefault(scope_path(context, names, group)[:-1], len(places)) for group in found.groups]
    blocks = context.blocks
    ends = [FOREVER if end == int(NEVER) else end for end in blocks.end[rows].tolist()]
    return LiveBlocks(
        begin=tuple(blocks.begin[rows].tolist()),
        end=tuple(ends),
        bytes=tuple(blocks.bytes[rows].tolist()),
        key=tuple(context.ledger.code[rows].tolist()),
        file=tuple((context.file_bytes[rows] > 0).astype(int).tolist()),
        place=tuple(of_group[group] for group in found.member.tolist()),
        places=tuple(places),
    )


def _largest(context: Context, most: int) -> I64:
    shown = np.array([key.counted or _is_callers(key.owner, key.category) for key in context.keys], np.bool_)
    sizes = context.private_bytes + context.file_bytes
    rows = np.flatnonzero(shown[context.ledger.code] & (sizes > 0))
    if len(rows) > most:
        rows = np.sort(rows[np.argpartition(-sizes[rows], most)[:most]])
    return rows


def _is_callers(owner: str, category: Category) -> bool:
    return owner == HOST and category is Category.INPUTS_OUTPUTS
