"""Planned memory as a map: what lies where, from which instruction to which."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from etmem.analysis.context import Context
from etmem.model.summary import PlannedTensor, SourceLine
from etmem.program.instructions import instruction_name
from etmem.program.lifetimes import BEFORE, Lifetimes, Storage, lifetimes, live_bytes
from etmem.program.model import Plan

if TYPE_CHECKING:
    from etmem.program import Program


Place = tuple[int, str, int, int, int]
"""Program, method, mem_id, offset and first instruction: what tells one storage from all others."""


@dataclass(frozen=True)
class PlannedStorage:
    mem_id: int
    offset: int
    bytes: int
    first: int
    """The instruction that fills it; -1: there before the first."""
    last: int
    label: str
    kind: str
    """``input``, ``output``, ``mutable`` or ``temporary``."""
    source: SourceLine | None = None
    """Where in the eager model it comes from, with an ETRecord."""


@dataclass(frozen=True)
class PlanMap:
    """The planned memory of one method; empty lists where the method plans none."""

    program: int
    method: str
    instructions: tuple[str, ...]
    live_bytes: tuple[int, ...]
    """In use at each time, from -1 (before the first instruction) to the number of instructions (after the last)."""
    peak: int
    """The time of the most bytes in use."""
    buffers: tuple[tuple[int, int], ...]
    """(mem_id, bytes)."""
    storages: tuple[PlannedStorage, ...]


def plan_maps(context: Context, tensors: Iterable[PlannedTensor] = ()) -> tuple[PlanMap, ...]:
    """One for each method that was loaded, as far as the program's file is still there. ``tensors`` know sources."""
    loaded = dict.fromkeys(
        (phase.program, phase.method) for phase in context.phases if phase.method is not None and phase.kind.is_load
    )
    maps = (found for program, method in loaded for found in _map(context.program(program), program, method))
    sources = {_place(tensor.program, tensor.method, tensor): tensor.sources[0] for tensor in tensors if tensor.sources}
    return tuple(_with_sources(found, sources) for found in maps)


def _with_sources(found: PlanMap, sources: Mapping[Place, SourceLine]) -> PlanMap:
    storages = (replace(one, source=sources.get(_place(found.program, found.method, one))) for one in found.storages)
    return replace(found, storages=tuple(storages)) if sources else found


def _place(program: int, method: str, one: PlannedTensor | PlannedStorage) -> Place:
    return program, method, one.mem_id, one.offset, one.first


def _map(program: Program | None, number: int, method: str) -> Iterator[PlanMap]:
    plan = program.plan(method) if program is not None else None
    if plan is not None:
        yield plan_map(plan, number)


def plan_map(plan: Plan, program: int = 0) -> PlanMap:
    found = lifetimes(plan)
    live = tuple(live_bytes(found.storages, found.end))
    return PlanMap(
        program=program,
        method=plan.name,
        instructions=tuple(instruction_name(plan, instruction) for instruction in found.instructions),
        live_bytes=live,
        peak=live.index(max(live)) + BEFORE,
        buffers=plan.planned,
        storages=tuple(_storage(plan, found, storage) for storage in found.storages),
    )


def _storage(plan: Plan, found: Lifetimes, storage: Storage) -> PlannedStorage:
    tensors = [tensor for value in storage.values if (tensor := plan.tensor(value)) is not None]
    largest = max(tensors, key=lambda tensor: tensor.nbytes)
    shape = ",".join(str(size) for size in largest.sizes)
    label = f"{largest.dtype.name}[{shape}]"
    if largest.name:
        label = f"{largest.name} {label}"
    if len(tensors) > 1:
        label += f" and {len(tensors) - 1} more on the same bytes"
    return PlannedStorage(
        storage.mem_id,
        storage.offset,
        storage.bytes,
        storage.first,
        storage.last,
        label,
        _kind(plan, found, storage),
    )


def _kind(plan: Plan, found: Lifetimes, storage: Storage) -> str:
    values = set(storage.values)
    for kind, members in (("mutable", found.mutable), ("output", plan.outputs), ("input", plan.inputs)):
        if values & set(members):
            return kind
    return "temporary"
