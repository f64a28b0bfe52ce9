"""Findings that follow from the program file: bounds, cuts and copies in planned memory."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from etmem.analysis.findings_common import loaded_plans, mib, total_bytes, worth_a_remark
from etmem.model.summary import Finding
from etmem.model.words import EXECUTORCH, Category, Certainty, FindingCode
from etmem.program import remarks
from etmem.program.bounds import dynamic_bound
from etmem.program.breaks import graph_breaks as breaks_of
from etmem.program.copies import buffer_copies, constant_copies

if TYPE_CHECKING:
    from etmem.analysis.context import Context
    from etmem.analysis.scopes import Instance
    from etmem.program.bounds import DynamicBound


def graph_breaks(context: Context) -> tuple[Finding, ...]:
    """Backends that are cut into several delegates, however little it costs: other parts of the cost (init,
    packing, fusion) are not bytes of planned memory."""
    return tuple(
        remarks.graph_break(plan, cut)
        for _, plan in loaded_plans(context)
        for cut in breaks_of(plan)
        if remarks.worth_naming(plan, cut)
    )


def kv_copies(context: Context) -> tuple[Finding, ...]:
    """Mutable buffers, such as KV caches, that functionalised updates copy at full size."""
    found = [(plan, buffer_copies(plan)) for _, plan in loaded_plans(context)]
    return tuple(
        remarks.kv_copies(plan, copies)
        for plan, copies in found
        if copies is not None and worth_a_remark(context, copies.copied_bytes - copies.buffer_bytes)
    )


def transposed_weights(context: Context) -> tuple[Finding, ...]:
    """Constants that are transposed or copied into planned memory in every inference."""
    found = [(plan, constant_copies(plan)) for _, plan in loaded_plans(context)]
    return tuple(
        remarks.transposed_weight(plan, copies)
        for plan, copies in found
        if copies is not None and worth_a_remark(context, copies.copied_bytes)
    )


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
