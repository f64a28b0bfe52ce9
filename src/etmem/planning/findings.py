"""Findings from the file alone, largest saving first."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from etmem.delegates.estimating import Life
from etmem.model.summary import Finding
from etmem.model.words import EXECUTORCH, Category, Certainty, FindingCode, delegate
from etmem.planning.duplicates import duplicates
from etmem.program import remarks
from etmem.program.bounds import dynamic_bound
from etmem.program.breaks import graph_breaks
from etmem.program.copies import buffer_copies, constant_copies
from etmem.program.remarks import mib, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from etmem.planning.estimate import Instance
    from etmem.planning.model import MethodPlan
    from etmem.program.file import Read
    from etmem.program.model import Plan, Program

_LEAST_BYTES = 64 * 1024
_LEAST_SHARE = 0.01


def findings(
    program: Program,
    read: Read,
    plans: Sequence[Plan],
    methods: Sequence[MethodPlan],
    instances: Mapping[str, Sequence[Instance]],
    options: Mapping[str, str],
) -> tuple[Finding, ...]:
    """``read`` gives bytes of the program."""
    least = _LEAST_SHARE * max(
        program.file_bytes, max((arena.bytes for method in methods for arena in method.arenas), default=0)
    )
    found: list[Finding] = []
    for plan, method in zip(plans, methods, strict=True):
        found += [remarks.graph_break(plan, cut) for cut in graph_breaks(plan) if remarks.worth_naming(plan, cut)]
        found += _copies(plan)
        found += _dynamic(plan, method, instances.get(plan.name, ()))
        found += _waste(method)
    found += _packed_twice(instances, options)
    found += _stored_twice(program, read)
    kept = [finding for finding in found if finding.bytes >= max(least, _LEAST_BYTES)]
    return tuple(sorted(kept, key=lambda finding: (-(finding.saving_bytes or 0), -finding.bytes)))


def _copies(plan: Plan) -> Iterator[Finding]:
    buffers, constants = buffer_copies(plan), constant_copies(plan)
    if buffers is not None and buffers.copied_bytes > buffers.buffer_bytes:
        yield remarks.kv_copies(plan, buffers)
    if constants is not None:
        yield remarks.transposed_weight(plan, constants)


def _dynamic(plan: Plan, method: MethodPlan, instances: Sequence[Instance]) -> Iterator[Finding]:
    bound = dynamic_bound(plan)
    if bound is None:
        return
    workspaces = [found.estimate.workspace.bytes for found in instances
                  if found.estimate is not None and found.estimate.workspace is not None]  # fmt: skip
    workspace = max(workspaces, default=0)
    total = bound.bound_bytes + workspace
    where = f"{mib(bound.bound_bytes)} MiB planned"
    if workspace:
        where += f" and {mib(workspace)} of workspace"
    shapes = ", ".join("x".join(map(str, shape)) for _, shape in bound.bounds)
    given = {spec.index: spec.shape for spec in method.inputs if not spec.upper_bound}
    share = bound.used_share(given)
    advice = f"{where} of {plan.name} are sized by the upper bound of its dynamic shape ({shapes})"
    saving = None
    if share is None or share >= 1:
        advice += ": a smaller input needs as much. A smaller bound in the export saves in proportion."
    else:
        saving = int(total * (1 - share))
        advice += f"; the shape given uses {share * 100:.2g} % of it. A bound at its size saves {mib(saving)}."
    yield Finding(
        code=FindingCode.DYNAMIC_BOUND,
        owner=EXECUTORCH,
        bytes=total,
        saving_bytes=saving,
        certainty=Certainty.POSSIBLE if saving is None else Certainty.ESTIMATED,
        advice=advice,
        detail={
            "method": plan.name,
            "planned_bytes": bound.bound_bytes,
            "workspace_bytes": workspace,
            "used_share": share,
            "bounds": [[index, *shape] for index, shape in bound.bounds],
        },
    )


def _waste(method: MethodPlan) -> Iterator[Finding]:
    for arena in method.arenas:
        if arena.waste_bytes < _LEAST_SHARE * arena.bytes:
            continue
        yield Finding(
            code=FindingCode.ARENA_WASTE,
            owner=EXECUTORCH,
            bytes=arena.waste_bytes,
            saving_bytes=arena.waste_bytes,
            certainty=Certainty.POSSIBLE,
            advice=f"planned[{arena.mem_id}] of {method.name} is {mib(arena.bytes)} MiB, of which at most "
            f"{mib(arena.live_peak_bytes)} are live at once: gaps between lifetimes take {mib(arena.waste_bytes)}.",
            detail={"method": method.name, "mem_id": arena.mem_id, "live_peak_bytes": arena.live_peak_bytes},
        )


def _packed_twice(instances: Mapping[str, Sequence[Instance]], options: Mapping[str, str]) -> Iterator[Finding]:
    """Packed blocks of one name in several delegates: each packs its own unless a weight cache is on."""
    if options.get("weight_cache_enabled") == "true":
        return
    sizes: dict[str, dict[str, list[tuple[str, int]]]] = defaultdict(lambda: defaultdict(list))
    for every in instances.values():
        for instance in every:
            for block in instance.estimate.blocks if instance.estimate else ():
                if block.key is not None and (block.category, block.life) == (Category.PACKED_WEIGHTS, Life.LOADED):
                    sizes[instance.backend][block.key].append((instance.label, block.total_bytes))
    for backend, keys in sizes.items():
        again = [size for users in keys.values() for _, size in users[1:]]
        labels = dict.fromkeys(label for users in keys.values() if len(users) > 1 for label, _ in users)
        if not again:
            continue
        methods = list(dict.fromkeys(label.partition("/")[0] for label in labels))
        who = (
            f"{', '.join(methods[:-1])} and {methods[-1]} each" if len(methods) > 1 else f"{len(labels)} delegates each"
        )
        yield Finding(
            code=FindingCode.PACKED_TWICE,
            owner=delegate(backend),
            bytes=sum(again),
            saving_bytes=sum(again),
            certainty=Certainty.EXACT,
            advice=f"{who} pack the same weights, which the file holds once ({plural(len(again), 'block')} again); "
            f"{backend}:weight_cache_enabled=true packs them once.",
            detail={"blocks": len(again), "instances": list(labels)},
        )


def _stored_twice(program: Program, read: Read) -> Iterator[Finding]:
    groups = duplicates(program, read)
    again = sum(group.bytes * (len(group.names) - 1) for group in groups)
    if not again:
        return
    largest = max(groups, key=lambda group: group.bytes)
    yield Finding(
        code=FindingCode.STORED_TWICE,
        owner=EXECUTORCH,
        bytes=again,
        saving_bytes=again,
        certainty=Certainty.EXACT,
        advice=f"the file holds {plural(len(groups), 'piece')} of data more than once, {mib(again)} MiB again; the "
        f"largest, {mib(largest.bytes)} MiB, {len(largest.names)} times: {', '.join(largest.names[:3])}.",
        detail={"groups": [{"bytes": group.bytes, "names": list(group.names)} for group in groups[:20]]},
    )
