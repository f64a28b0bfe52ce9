"""The blocks that a page can list at any moment: the largest one by one, equal ones together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from etmem.analysis.context import Context
from etmem.analysis.lookup import I64
from etmem.model.words import HOST, Category
from etmem.report.scope_names import ScopeNames
from etmem.report.stacks import grouped, scope_path
from etmem.trace.folding import live_at
from etmem.trace.tables import NEVER, U64

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


def live_blocks(context: Context, stamps: Sequence[int], most: int = MOST) -> LiveBlocks:
    """Of all that peaks count and of the caller's inputs and outputs; of folded blocks, those live at the stamps."""
    chosen = _largest(_shown(context, np.array(stamps, np.uint64)), most)
    rows = chosen.row
    names = ScopeNames(context)
    found = grouped(context, rows)
    places: dict[tuple[str, ...], int] = {}
    of_group = [places.setdefault(scope_path(context, names, group)[:-1], len(places)) for group in found.groups]
    ends = [FOREVER if end == int(NEVER) else end for end in chosen.end.tolist()]
    return LiveBlocks(
        begin=tuple(chosen.begin.tolist()),
        end=tuple(ends),
        bytes=tuple(context.blocks.bytes[rows].tolist()),
        key=tuple(context.ledger.code[rows].tolist()),
        file=tuple((context.file_bytes[rows] > 0).astype(int).tolist()),
        place=tuple(of_group[group] for group in found.member.tolist()),
        places=tuple(places),
    )


@dataclass(frozen=True)
class _Lives:
    """One entry per block, by begin."""

    begin: U64
    end: U64
    row: I64
    bytes: U64


def _shown(context: Context, stamps: U64) -> _Lives:
    of_key = np.array([key.counted or _is_callers(key.owner, key.category) for key in context.keys], np.bool_)
    blocks, brief = context.blocks, context.ledger.brief
    shown = of_key[context.ledger.code] & (context.ledger.both > 0)
    own = np.flatnonzero(shown & (blocks.folded == 0))
    folded = live_at(brief, stamps)
    folded = folded[shown[brief.row[folded]]]
    begin = np.concatenate([blocks.begin[own], brief.begin[folded]])
    end = np.concatenate([blocks.end[own], brief.begin[folded] + brief.life[folded]])
    row = np.concatenate([own, brief.row[folded].astype(np.int64)])
    return _Lives(begin, end, row, blocks.bytes[row])


def _largest(lives: _Lives, most: int) -> _Lives:
    chosen = np.arange(len(lives.row))
    if len(chosen) > most:
        chosen = np.argpartition(-lives.bytes.astype(np.int64), most)[:most]
    chosen = chosen[np.lexsort((chosen, lives.begin[chosen]))]
    return _Lives(lives.begin[chosen], lives.end[chosen], lives.row[chosen], lives.bytes[chosen])


def _is_callers(owner: str, category: Category) -> bool:
    return owner == HOST and category is Category.INPUTS_OUTPUTS
