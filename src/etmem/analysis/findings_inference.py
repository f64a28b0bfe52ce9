"""Findings about what inference adds: what appears in the first one, and the tables that convolutions keep."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import numpy as np

from etmem.analysis.findings_common import (
    bytes_by_key,
    loaded_plans,
    mib,
    peak_bytes,
    plural,
    total_bytes,
    worth_a_remark,
)
from etmem.delegates import Description
from etmem.delegates.indirection import indirection
from etmem.model.summary import Finding
from etmem.model.words import EXECUTORCH, Category, Certainty, FindingCode, PhaseKind, delegate
from etmem.program import Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from etmem.analysis.context import Context, Span
    from etmem.analysis.lookup import I64

_POINTER_TABLES = ("convolution2d", "deconvolution2d", "average_pooling2d", "max_pooling2d", "argmax_pooling2d")
"""Operators that keep a pointer for each output pixel and tap of their window."""


def first_inference_grows(context: Context) -> tuple[Finding, ...]:
    """Counted blocks that a method's first inference allocates and that are there at the end of the last one."""
    steady, load_end = context.peak_stamps.get("steady"), _last_load_end(context)
    if steady is None or load_end is None:
        return ()
    grown = np.zeros(len(context.blocks), np.bool_)
    begin = context.blocks.begin
    for span in _first_inferences(context):
        grown |= (begin >= span.begin) & (begin <= span.end)
    rows = np.flatnonzero(grown & context.ledger.counted & context.ledger.live(steady))
    count = total_bytes(context, rows)
    if not worth_a_remark(context, count):
        return ()
    after_load = total_bytes(context, np.flatnonzero(context.ledger.counted & context.ledger.live(load_end)))
    return (
        Finding(
            code=FindingCode.FIRST_INFERENCE_GROWS,
            owner=_largest_owner(context, rows),
            bytes=count,
            saving_bytes=None,
            certainty=Certainty.EXACT,
            advice=f"appears in the first inference and stays: a check after load sees {mib(after_load)} "
            f"of {mib(peak_bytes(context))} MiB.",
            detail={"blocks": len(rows), "after_load_bytes": after_load},
        ),
    )


def _first_inferences(context: Context) -> Iterator[Span]:
    seen = set()
    for span in context.spans_of(PhaseKind.INFERENCE):
        method = (span.scope.a, span.scope.name)
        if method not in seen:
            seen.add(method)
            yield span


def _last_load_end(context: Context) -> int | None:
    inferences = context.spans_of(PhaseKind.INFERENCE)
    loads = [
        span for span in context.spans_of(PhaseKind.METHOD_LOAD) if not inferences or span.end < inferences[0].begin
    ]
    return max((span.end for span in loads), default=None)


def _largest_owner(context: Context, rows: I64) -> str:
    sizes: Counter[str] = Counter()
    for key, count in bytes_by_key(context, rows).items():
        sizes[key.owner] += count
    return max(sizes, key=lambda owner: sizes[owner], default=EXECUTORCH)


def indirection_buffers(context: Context) -> tuple[Finding, ...]:
    """The pointer tables of convolutions and poolings that are live at the peak of inference."""
    stamp = context.peak_stamps.get("inference")
    if stamp is None:
        return ()
    live = context.ledger.live(stamp)
    found = []
    for backend, description in context.descriptions.items():
        if not isinstance(description, Description):
            continue
        rows = context.rows(owner=delegate(backend), category=Category.OPERATOR_BUFFERS)
        rows = rows[live[rows]]
        tables: dict[str, list[int]] = defaultdict(list)
        for row in rows.tolist():
            operator = description.operator(context.call_stack(row), context.function(row)) or ""
            kind = next((kind for kind in _POINTER_TABLES if operator.startswith(kind)), None)
            if kind is not None:
                tables[kind].append(int(context.blocks.bytes[row]))
        if worth_a_remark(context, sum(map(sum, tables.values()))):
            found.append(_indirection_buffers(context, backend, tables, description.tiles))
    return tuple(found)


def _indirection_buffers(
    context: Context, backend: str, tables: dict[str, list[int]], tiles: Mapping[str, int]
) -> Finding:
    sizes = [size for kind in tables.values() for size in kind]
    parts = []
    for kind, held in tables.items():
        noun = kind.removesuffix("2d").replace("_", " ")
        each = f"{held[0]:,} B each" if len(set(held)) == 1 else f"{min(held):,} to {max(held):,} B"
        parts.append(f"{plural(len(held), noun)}, {each}")
    return Finding(
        code=FindingCode.INDIRECTION_BUFFERS,
        owner=delegate(backend),
        bytes=sum(sizes),
        saving_bytes=None,
        certainty=Certainty.EXACT,
        advice=f"{'; '.join(parts)}: {_formula(context, set(sizes), tiles)}.",
        detail={"blocks": len(sizes), "sizes": [list(entry) for entry in sorted(Counter(sizes).items())]},
    )


def _formula(context: Context, sizes: set[int], tiles: Mapping[str, int]) -> str:
    """How the size comes about: in figures, where all are of one size that one convolution explains."""
    pointer, isa = context.options.target.pointer_bytes, context.options.target.isa
    found = indirection(next(iter(sizes)) // pointer, tiles[isa], _images(context)) if isa in tiles else None
    if found is None or len(sizes) > 1:
        return f"ceil(H*W/tile)*tile output pixels * window taps * {pointer} B, the tile being the CPU's"
    others = [f"{found.pointers(tile) * pointer:,} on {name}" for name, tile in tiles.items() if name != isa]
    return (
        f"{found.height}x{found.width} outputs, {found.taps} taps, {pointer} B pointers, "
        f"tile {tiles[isa]} ({'; '.join([isa, *others])})"
    )


def _images(context: Context) -> set[tuple[int, int]]:
    """(height, width) of the images that the loaded methods plan."""
    tensors = (value for _, plan in loaded_plans(context) for value in plan.values if isinstance(value, Tensor))
    return {(tensor.sizes[2], tensor.sizes[3]) for tensor in tensors if len(tensor.sizes) == 4}
