"""Rows of blocks, and the folded blocks that share some of them: chosen, reordered, given rows of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace

import numpy as np
import numpy.typing as npt

from etmem.trace.tables import I64, U64, Blocks, Folded

LONGEST = 1 << 20
"""Stamps: no folded block lives longer."""
_PIECE = 1 << 20


def select(blocks: Blocks, brief: Folded, rows: npt.NDArray[np.intp]) -> tuple[Blocks, Folded]:
    """Some rows, in the order given. Those of live folded blocks must be among them."""
    chosen = Blocks(**{column.name: getattr(blocks, column.name)[rows] for column in fields(Blocks)})
    if not len(brief):
        return chosen, brief
    place = np.zeros(len(blocks), np.uint32)
    place[rows] = np.arange(len(rows), dtype=np.uint32)
    return chosen, replace(brief, row=place[brief.row])


def saved(blocks: Blocks, brief: Folded) -> int:
    """How many rows there are fewer than blocks."""
    return len(brief) - int(np.count_nonzero(blocks.folded))


def unfold(blocks: Blocks, brief: Folded, stamps: U64) -> tuple[Blocks, Folded]:
    """Gives the folded blocks that are live at any of the stamps rows of their own.

    But of the first of a row, their addresses are not known any more: 0. What is left of a row keeps what it had.
    """
    return _unfold(blocks, brief, live_at(brief, stamps))


def unfold_all(blocks: Blocks, brief: Folded) -> Blocks:
    """Gives every folded block a row of its own."""
    single = blocks.folded == 1
    shared = ~single[brief.row]
    left = Folded(brief.begin[shared], brief.life[shared], brief.row[shared])
    own = replace(blocks, folded=np.where(single, np.uint32(0), blocks.folded))
    return _unfold(own, left, np.arange(len(left)))[0]


def _unfold(blocks: Blocks, brief: Folded, alone: I64) -> tuple[Blocks, Folded]:
    """``alone`` are the places of those that get rows."""
    if not len(alone):
        return blocks, brief
    of_row = brief.row[alone]
    life = brief.life.copy()
    life[alone] = 0  # counts nowhere from now on
    left = blocks.folded - np.bincount(of_row, minlength=len(blocks)).astype(np.uint32)
    added = {column.name: getattr(blocks, column.name)[of_row] for column in fields(Blocks)}
    added |= {"begin": brief.begin[alone], "end": brief.begin[alone] + brief.life[alone]}
    added["folded"] = np.zeros(len(alone), np.uint32)
    is_first = added["begin"] == blocks.begin[of_row]
    added["address"] = np.where(is_first, blocks.address[of_row], np.uint64(0))
    kept = np.flatnonzero((blocks.folded == 0) | (left > 0))
    together = Blocks(
        **{
            column.name: np.concatenate([getattr(replace(blocks, folded=left), column.name), added[column.name]])
            for column in fields(Blocks)
        }
    )
    order = np.concatenate([kept, np.arange(len(blocks), len(together))])
    order = order[np.argsort(together.begin[order], kind="stable")]
    return select(together, Folded(brief.begin, life, brief.row), order)


def live_at(brief: Folded, stamps: U64) -> I64:
    """Those that are live at any of the stamps, which are sorted."""
    if not len(brief) or not len(stamps):
        return np.empty(0, np.int64)
    first = np.searchsorted(brief.begin, np.maximum(stamps, np.uint64(LONGEST)) - np.uint64(LONGEST), "left")
    after = np.searchsorted(brief.begin, stamps, "right")
    if int((after - first).sum()) > 2 * len(brief):  # many stamps: each block is looked at once
        parts = [at + np.flatnonzero(seen(brief, at, stamps)) for at in pieces(brief)]
        return np.concatenate(parts)
    found = [
        low + np.flatnonzero(brief.begin[low:high] + brief.life[low:high] > stamp)
        for stamp, low, high in zip(stamps, first.tolist(), after.tolist(), strict=True)
    ]
    return np.unique(np.concatenate(found))


def pieces(brief: Folded) -> Iterator[int]:
    """Where each piece of them begins: columns over all would take several times their memory."""
    return iter(range(0, len(brief), _PIECE))


def seen(brief: Folded, at: int, stamps: U64) -> npt.NDArray[np.bool_]:
    """Of one piece, those that are live at any of the stamps."""
    part = slice(at, at + _PIECE)
    begin = brief.begin[part]
    return np.searchsorted(stamps, begin) < np.searchsorted(stamps, begin + brief.life[part])


def part_of(brief: Folded, at: int) -> Folded:
    """One piece."""
    part = slice(at, at + _PIECE)
    return Folded(brief.begin[part], brief.life[part], brief.row[part])
