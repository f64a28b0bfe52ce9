"""Findings that follow from the program file: bounds, cuts and copies in planned memory."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from etmem.analysis.findings_common import loaded_plans, mib, operator_name, plural, total_bytes, worth_a_remark
from etmem.model.summary import Finding
from etmem.model.words import EXECUTORCH, Category, Certainty, FindingCode
from etmem.program.bounds import dynamic_bound
from etmem.program.breaks import graph_breaks as breaks_of
from etmem.program.copies import buffer_copies, constant_copies

if TYPE_CHECKING:
    from etmem.analysis.context import Context
    from etmem.analysis.scopes import Instance
    from etmem.program import Plan
    from etmem.program.bounds import DynamicBound
    from etmem.program.breaks import GraphBreak

_LEAST_CROSSING = 0.01
"""Cuts over which less of planned memory goes than this are no remark."""
_NAMED_OPERATORS = 3


def graph_breaks(context: Context) -> tuple[Finding, ...]:
    """Backends that are cut into several delegates, however little it costs: other parts of the cost (init,
    packing, fusion) are not bytes of planned memory."""
    found = []
    for _, plan in loaded_plans(context):
        planned = sum(size for _, size in plan.planned)
        found += [
            _graph_break(plan, cut, planned)
            for cut in breaks_of(plan)
            if planned and cut.crossing_bytes >= _LEAST_CROSSING * planned
        ]
    return tuple(found)


def _graph_break(plan: Plan, cut: GraphBreak, planned: int) -> Finding:
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


def kv_copies(context: Context) -> tuple[Finding, ...]:
    """Mutable buffers, such as KV caches, that functionalised updates copy at full size."""
    found = []
    for _, plan in loaded_plans(context):
        copies = buffer_copies(plan)
        if copies is None or not worth_a_remark(context, copies.copied_bytes - copies.buffer_bytes):
            continue
        planned = sum(size for _, size in plan.planned)
        times = copies.copied_bytes / copies.buffer_bytes
        found.append(
            Finding(
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
        )
    return tuple(found)


def transposed_weights(context: Context) -> tuple[Finding, ...]:
    """Constants that are transposed or copied into planned memory in every inference."""
    found = []
    for _, plan in loaded_plans(context):
        copies = constant_copies(plan)
        if copies is None or not worth_a_remark(context, copies.copied_bytes):
            continue
        planned = sum(size for _, size in plan.planned)
        operators = ", ".join(map(operator_name, copies.operators))
        found.append(
            Finding(
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
        )
    return tuple(found)


def dynamic_bounds(context: Context) -> tuple[Finding, ...]:
    """Planned memory and workspaces that dynamic shapes size by their upper bounds."""
    found = []
    for program, plan in loaded_plans(context):
        bound = dynamic_bound(plan)
        if bound is not None:
            workspace = _workspace_bytes(context, program, plan.name)
            if worth_a_remark(context, bound.bound_bytes + workspace):
                found.append(_dynamic_bound(context, bound, workspace))
    return tuple(found)


def _dynamic_bound(context: Context, bound: DynamicBound, workspace: int) -> Finding:
    total = bound.bound_bytes + workspace
    share = bound.used_share(_shapes(context, bound.method))
    where = f"{mib(bound.bound_bytes)} MiB planned"
    if workspace:
        where += f" and {mib(workspace)} of workspace"
    shapes = ", ".join("x".join(map(str, shape)) for _, shape in bound.bounds)
    advice = f"{where} of {bound.method} are sized by the upper bound of its dynamic shape ({shapes})"
    if share is None or share >= 1:
        advice += ": a smaller input needs as much. A smaller bound in the export saves in proportion."
        saving, certainty = None, Certainty.POSSIBLE
    else:
        saving, certainty = int(total * (1 - share)), Certainty.ESTIMATED
        advice += f"; this run used {_percent(share)} of it. A bound at its size saves {mib(saving)}."
    return Finding(
        code=FindingCode.DYNAMIC_BOUND,
        owner=EXECUTORCH,
        bytes=total,
        saving_bytes=saving,
        certainty=certainty,
        advice=advice,
        detail={
            "method": bound.method,
            "planned_bytes": bound.bound_bytes,
            "workspace_bytes": workspace,
            "used_share": share,
        },
    )


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %" if share >= 0.01 else f"{share * 100:.2g} %"


def _shapes(context: Context, method: str) -> dict[int, tuple[int, ...]]:
    """The largest shape of each input that the method was run with, where the capture knows."""
    given: dict[int, tuple[int, ...]] = {}
    for spec in context.options.target.inputs:
        if spec.method == method and (spec.index not in given or prod(spec.shape) > prod(given[spec.index])):
            given[spec.index] = spec.shape
    return given


def _workspace_bytes(context: Context, program: int, method: str) -> int:
    """The workspace of a method's delegates at the inference peak. A shared one counts where it was allocated."""
    stamp = context.peak_stamps.get("inference")
    if stamp is None:
        return 0
    rows = context.rows(category=Category.WORKSPACE)
    rows = rows[context.ledger.live(stamp)[rows]]
    allocators = context.table.instance[context.who.scope[rows]].tolist()
    mine = [index >= 0 and _is_of(context.instances[index], program, method) for index in allocators]
    return total_bytes(context, rows[np.array(mine, np.bool_)])


def _is_of(instance: Instance, program: int, method: str) -> bool:
    return (instance.program, instance.method) == (program, method)
