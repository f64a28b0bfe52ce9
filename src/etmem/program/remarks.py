"""Remarks on what a program's file says of planned memory: cuts, copies and their bytes, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from etmem.model.summary import Finding
from etmem.model.words import EXECUTORCH, Certainty, FindingCode

if TYPE_CHECKING:
    from etmem.program.breaks import GraphBreak
    from etmem.program.copies import BufferCopies, ConstantCopies
    from etmem.program.model import Plan

_LEAST_CROSSING = 0.01
"""Cuts over which less of planned memory goes than this are no remark."""
_NAMED_OPERATORS = 3


def planned_bytes(plan: Plan) -> int:
    return sum(size for _, size in plan.planned)


def worth_naming(plan: Plan, cut: GraphBreak) -> bool:
    planned = planned_bytes(plan)
    return planned > 0 and cut.crossing_bytes >= _LEAST_CROSSING * planned


def graph_break(plan: Plan, cut: GraphBreak) -> Finding:
    planned = planned_bytes(plan)
    names = [f"{operator_name(name)} x{count}" for name, count in cut.operators[:_NAMED_OPERATORS]]
    more = len(cut.operators) - len(names)
    what = ", ".join(names) + (f" and {plural(more, 'other operator')}" if more else "")
    saves = f"Uncut: {mib(planned - cut.saving_bytes)}, saves {cut.saving_bytes / 2**20:.2f}."
    if not cut.saving_bytes:
        saves = "Uncut, it would plan as much."
    return Finding(
        code=FindingCode.GRAPH_BREAK,
        owner=EXECUTORCH,
        bytes=cut.crossing_bytes,
        saving_bytes=cut.saving_bytes,
        certainty=Certainty.ESTIMATED,
        advice=f"{what} cut{'s' if len(cut.operators) == 1 else ''} {plan.name} into {cut.delegates} delegates; what "
        f"crosses a cut lives in planned memory: {mib(cut.crossing_bytes)} of its {mib(planned)} MiB. {saves}",
        detail={
            "method": plan.name,
            "backend": cut.backend,
            "delegates": cut.delegates,
            "operators": dict(cut.operators),
            "planned_bytes": planned,
            "uncut_planned_bytes": planned - cut.saving_bytes,
        },
    )


def kv_copies(plan: Plan, copies: BufferCopies) -> Finding:
    planned = planned_bytes(plan)
    times = copies.copied_bytes / copies.buffer_bytes
    return Finding(
        code=FindingCode.KV_COPIES,
        owner=EXECUTORCH,
        bytes=copies.copied_bytes,
        saving_bytes=copies.saving_bytes,
        certainty=Certainty.ESTIMATED,
        advice=f"planned memory holds {plan.name}'s {plural(copies.buffers, 'mutable buffer')} "
        f"({mib(copies.buffer_bytes)} MiB) {times:.3g} times over: updates go to copies that share no storage. "
        f"In place they save {mib(copies.saving_bytes)} of {mib(planned)} MiB.",
        detail={
            "method": plan.name,
            "buffers": copies.buffers,
            "buffer_bytes": copies.buffer_bytes,
            "copies": copies.copies,
            "planned_bytes": planned,
        },
    )


def transposed_weight(plan: Plan, copies: ConstantCopies) -> Finding:
    planned = planned_bytes(plan)
    operators = ", ".join(map(operator_name, copies.operators))
    return Finding(
        code=FindingCode.TRANSPOSED_WEIGHT,
        owner=EXECUTORCH,
        bytes=copies.copied_bytes,
        saving_bytes=copies.saving_bytes,
        certainty=Certainty.ESTIMATED,
        advice=f"{operators} puts {plural(copies.tensors, 'constant')} of {plan.name} into another order in "
        f"every inference: {mib(copies.copied_bytes)} of {mib(planned)} MiB of planned memory. Stored in that "
        f"order, or delegated, they save {mib(copies.saving_bytes)}.",
        detail={"method": plan.name, "constants": copies.tensors, "planned_bytes": planned},
    )


def mib(count: int) -> str:
    """``64.0``: mebibytes, two decimals below 0.1."""
    value = count / 2**20
    return f"{value:.1f}" if value == 0 or value >= 0.095 else f"{value:.2f}"


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def operator_name(name: str) -> str:
    """``aten.cumsum`` for ``aten::cumsum.out``, as exported programs print it."""
    return name.partition(".")[0].replace("::", ".")
