"""Rows of blocks, and the folded blocks that share some of them: chosen, reordered, given rows of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

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


def with_rows(
    blocks: Blocks, brief: Folded, added: Mapping[str, npt.NDArray[Any]], kept: npt.NDArray[np.intp]
) -> tuple[Blocks, Folded]:
    """The rows that are kept and those that are added, by begin."""
    together = Blocks(
        **{column.name: np.concatenate([getattr(blocks, column.name), added[column.name]]) for column in fields(Blocks)}
    )
    order = np.concatenate([kept, np.arange(len(blocks), len(together))])
    return select(together, brief, order[np.argsort(together.begin[order], kind="stable")])


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
    return with_rows(replace(blocks, folded=left), Folded(brief.begin, life, brief.row), added, kept)


def live_at(brief: Folded, stamps: U64) -> I64:
    """Those that are live at any of the stamps, which are sorted."""
    if not len(brief) or not len(stamps):
        return np.empty(0, np.int64)
    first = np.searchsorted(brief.begin, np.maximum(stamps, np.uint64(LONGEST)) - np.uint64(LONGEST), "left")
    after = np.searchsorted(brief.begin, stamps, "right")
    if int((after - first).sum()) > 2 * len(brief):  # many stamps: each block is looked at once
        seen = (
            np.searchsorted(stamps, part.begin) < np.searchsorted(stamps, part.begin + part.life)
            for part in pieces(brief)
        )
        return np.flatnonzero(np.concatenate(list(seen)))
    found = [
        low + np.flatnonzero(brief.begin[low:high] + brief.life[low:high] > stamp)
        for stamp, low, high in zip(stamps, first.tolist(), after.tolist(), strict=True)
    ]
    return np.unique(np.concatenate(found))


def pieces(brief: Folded) -> Iterator[Folded]:
    """The same in pieces: columns made over all of them would take several times their memory."""
    for at in range(0, len(brief), _PIECE):
        part = slice(at, at + _PIECE)
        yield Folded(brief.begin[part], brief.life[part], brief.row[part])
