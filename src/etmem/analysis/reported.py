"""Memory that was reported and lies in no block that was seen: a heap's extents, and planned buffers.

Where no malloc is followed (a device), it is all there is; elsewhere it is of another kind, such as a static array.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from etmem.analysis.heaps import Extents
from etmem.analysis.lookup import containing
from etmem.model.words import EXECUTORCH, Category
from etmem.trace.folding import with_rows
from etmem.trace.tables import MAPPED, NEVER, BlockKind, Blocks, Claim, Folded, ScopeKind, Trace


@dataclass
class _Row:
    begin: int
    end: int
    address: int
    bytes: int
    scope: int
    thread: int


def with_reported(trace: Trace, blocks: Blocks, brief: Folded, extents: Extents) -> tuple[Blocks, Folded]:
    """The blocks and, as blocks of their own, what was reported and lies in none."""
    lost = np.flatnonzero((containing(blocks, extents.address, extents.begin) < 0) & (extents.bytes > 0))
    planned = _planned(trace, blocks)
    if not len(lost) and not planned:
        return blocks, brief

    def column(name: str, kind: npt.DTypeLike) -> npt.NDArray[Any]:
        return np.concatenate([getattr(extents, name)[lost], np.array([getattr(row, name) for row in planned], kind)])

    wide = {name: column(name, np.uint64) for name in ("begin", "end", "address", "bytes")}
    narrow = {name: column(name, np.uint32) for name in ("scope", "thread")}
    same = {"kind": BlockKind.HEAP, "stack": 0, "file": -1, "function": MAPPED}
    none = dict.fromkeys(("freed_scope", "freed_thread", "folded"), 0)
    return _with(blocks, brief, {**wide, **narrow, **same, **none}, len(lost) + len(planned))


def _planned(trace: Trace, blocks: Blocks) -> list[_Row]:
    """A planned buffer lives until its method is unloaded; several methods may be given one."""
    claims = [claim for claim in trace.claims if _is_planned(claim)]
    addresses = np.array([claim.address for claim in claims], np.uint64)
    stamps = np.array([claim.stamp for claim in claims], np.uint64)
    rows: list[_Row] = []
    for claim, row in zip(claims, containing(blocks, addresses, stamps).tolist(), strict=True):
        if row >= 0:
            continue
        known = next(
            (r for r in rows if r.address <= claim.address < r.address + r.bytes and claim.stamp < r.end), None
        )
        end = _unloaded(trace, claim)
        if known is not None:
            known.end, known.bytes = max(known.end, end), max(known.bytes, claim.address - known.address + claim.bytes)
            continue
        thread = trace.scopes[claim.scope].thread if claim.scope in trace.scopes else 0
        rows.append(_Row(claim.stamp, end, claim.address, claim.bytes, claim.scope, thread))
    return rows


def _is_planned(claim: Claim) -> bool:
    return claim.owner == EXECUTORCH and claim.category == Category.PLANNED_MEMORY and claim.bytes > 0


def _unloaded(trace: Trace, claim: Claim) -> int:
    load = trace.scopes.get(claim.scope)
    ends = [
        scope.end_stamp
        for scope in trace.scopes.values()
        if load is not None and scope.kind is ScopeKind.UNLOAD and scope.end_stamp is not None
        if (scope.a, scope.name) == (load.a, load.name) and scope.begin_stamp > claim.stamp
    ]
    return min(ends, default=int(NEVER))


def _with(
    blocks: Blocks, brief: Folded, more: Mapping[str, npt.NDArray[Any] | int], count: int
) -> tuple[Blocks, Folded]:
    added = {}
    for field in fields(Blocks):
        kind = getattr(blocks, field.name).dtype
        added[field.name] = np.broadcast_to(np.asarray(more[field.name], kind), count)
    return with_rows(blocks, brief, added, np.arange(len(blocks)))
