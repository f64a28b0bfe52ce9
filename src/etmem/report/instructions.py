"""What each instruction of a method allocated, and what it put into planned memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from etmem.analysis.context import Context
from etmem.report.plans import PlanMap, plan_maps
from etmem.trace.tables import Scope, ScopeKind

Place = tuple[int, str, int]
"""Program, method, index of the instruction."""


@dataclass(frozen=True)
class InstructionRow:
    program: int
    method: str
    index: int
    name: str
    executions: int
    allocated_bytes: int
    """In all its executions, delegates' work included."""
    allocations: int
    live_at_peak_bytes: int
    """Of what it allocated, live at the peak of inference."""
    planned_bytes: int
    """Of the places in planned memory that it fills."""
    planned_at_peak_bytes: int
    """Of these, in use at the instruction where planned memory is fullest."""


def instructions(context: Context, maps: tuple[PlanMap, ...] | None = None) -> tuple[InstructionRow, ...]:
    """By program, method and index; those that ran, and those of the file that did not."""
    maps = plan_maps(context) if maps is None else maps
    executions, names, place_of = _executed(context)
    totals = _allocated(context, place_of)
    planned = {(one.program, one.method): one for one in maps}
    places = set(executions)
    for (program, method), one in planned.items():
        places |= {(program, method, index) for index in range(len(one.instructions))}
    return tuple(
        _row(place, planned.get(place[:2]), executions[place], names.get(place, ""), totals[place])
        for place in sorted(places)
    )


def _row(place: Place, plan: PlanMap | None, executions: int, name: str, sums: tuple[int, int, int]) -> InstructionRow:
    program, method, index = place
    filled = [one for one in plan.storages if one.first == index] if plan is not None else []
    if plan is not None and index < len(plan.instructions):
        name = plan.instructions[index]
    at_peak = [one for one in filled if plan is not None and one.first <= plan.peak <= one.last]
    return InstructionRow(
        program,
        method,
        index,
        name,
        executions,
        *sums,
        planned_bytes=sum(one.bytes for one in filled),
        planned_at_peak_bytes=sum(one.bytes for one in at_peak),
    )


def _executed(context: Context) -> tuple[dict[Place, int], dict[Place, str], dict[int, Place]]:
    """Times that each instruction ran, the recorded names, and the instruction that each scope lies in."""
    executions: dict[Place, int] = defaultdict(int)
    names: dict[Place, str] = {}
    place_of: dict[int, Place] = {}
    table = context.table
    # Parents begin before what is in them.
    for scope in sorted(table.scopes.values(), key=lambda scope: scope.begin_stamp):
        outer = place_of.get(scope.parent)
        if scope.kind is not ScopeKind.INSTRUCTION:
            if outer is not None:
                place_of[scope.id] = outer
            continue
        place = _place(context, scope)
        if place is None:
            continue
        place_of[scope.id] = place
        executions[place] += place != outer
        names[place] = scope.name.removeprefix("native_call_")
    return executions, names, place_of


def _place(context: Context, scope: Scope) -> Place | None:
    phase = context.table.scopes.get(int(context.table.phase[scope.id]))
    return (phase.a, phase.name, scope.b) if phase is not None and phase.kind is ScopeKind.INFERENCE else None


def _allocated(context: Context, place_of: dict[int, Place]) -> dict[Place, tuple[int, int, int]]:
    """By place: bytes and number of allocations, and bytes live at the peak of inference."""
    totals: dict[Place, tuple[int, int, int]] = defaultdict(lambda: (0, 0, 0))
    rows = context.ledger.counted
    sizes = context.private_bytes + context.file_bytes
    stamp = context.peak_stamps.get("inference")
    live = context.ledger.live(stamp) if stamp is not None else np.zeros(len(sizes), np.bool_)
    length = len(context.table.phase)
    fresh = rows & context.fresh
    columns = (
        np.bincount(context.who.scope[fresh], sizes[fresh], length),
        np.bincount(context.who.scope[fresh], minlength=length),
        np.bincount(context.who.scope[rows & live], sizes[rows & live], length),
    )
    for scope, place in _within(place_of, length):
        old = totals[place]
        totals[place] = (
            old[0] + int(columns[0][scope]),
            old[1] + int(columns[1][scope]),
            old[2] + int(columns[2][scope]),
        )
    return totals


def _within(place_of: dict[int, Place], length: int) -> Iterator[tuple[int, Place]]:
    return ((scope, place) for scope, place in place_of.items() if scope < length)
