"""What the rules of findings share: when something is worth a remark, which methods ran, and how figures read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from etmem.model.words import Category, PhaseKind
from etmem.program.remarks import mib, plural

__all__ = [
    "bytes_by_key",
    "live_rows",
    "loaded_plans",
    "mib",
    "peak_bytes",
    "plural",
    "settled_stamp",
    "total_bytes",
    "worth_a_remark",
]

if TYPE_CHECKING:
    from collections.abc import Iterator

    from etmem.analysis.context import Context
    from etmem.analysis.keys import Key
    from etmem.analysis.lookup import I64
    from etmem.program import Plan

_LEAST_SHARE = 0.01
_LEAST_BYTES = 64 * 1024


def peak_bytes(context: Context) -> int:
    """The largest counted bytes, private and file, of load and inference."""
    peaks = (context.peaks.load, context.peaks.inference)
    return max((peak.moment.private_bytes + peak.moment.file_bytes for peak in peaks if peak), default=0)


def worth_a_remark(context: Context, count: int) -> bool:
    """At least 64 KiB, and 1 % of the peak."""
    return count >= max(_LEAST_BYTES, _LEAST_SHARE * peak_bytes(context))


def loaded_plans(context: Context) -> Iterator[tuple[int, Plan]]:
    """(program id, plan) of every method that was loaded and whose file is at hand, once each."""
    loads = dict.fromkeys((span.scope.a, span.scope.name) for span in context.spans_of(PhaseKind.METHOD_LOAD))
    for program, method in loads:
        file = context.program(program)
        plan = file.plan(method) if file is not None else None
        if plan is not None:
            yield program, plan


def settled_stamp(context: Context) -> int:
    """The end of the last inference, or of the last load where none ran."""
    loads = [span.end for span in context.spans_of(PhaseKind.METHOD_LOAD, PhaseKind.PROGRAM_LOAD)]
    return context.peak_stamps.get("steady", max(loads, default=context.last_stamp))


def live_rows(context: Context, stamp: int, category: Category) -> I64:
    """Rows of the delegates' blocks of one category that are live at a stamp."""
    rows = context.rows(category=category)
    live = context.ledger.live(stamp)
    return rows[live[rows]]


def bytes_by_key(context: Context, rows: I64) -> dict[Key, int]:
    """Private and file bytes of the rows under each key."""
    sizes = np.bincount(
        context.ledger.code[rows], context.private_bytes[rows] + context.file_bytes[rows], len(context.keys)
    )
    return {context.keys[code]: int(sizes[code]) for code in np.flatnonzero(sizes).tolist()}


def total_bytes(context: Context, rows: I64) -> int:
    return int((context.private_bytes[rows] + context.file_bytes[rows]).sum())
