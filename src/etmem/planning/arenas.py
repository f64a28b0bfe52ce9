"""Planned memory as a map: what lies where, from which instruction to which, and where an arena peaks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from etmem.planning.model import ArenaMap, Placed
from etmem.program.breaks import uncut_peak_bytes
from etmem.program.instructions import instruction_name
from etmem.program.lifetimes import BEFORE, Lifetimes, Storage, lifetimes, live_bytes

if TYPE_CHECKING:
    from etmem.program.model import Plan


def arena_maps(plan: Plan) -> tuple[ArenaMap, ...]:
    """One map for each planned buffer, by ``mem_id``."""
    found = lifetimes(plan)
    return tuple(_arena(plan, found, mem_id, size) for mem_id, size in plan.planned)


def instruction_names(plan: Plan) -> tuple[str, ...]:
    return tuple(instruction_name(plan, instruction) for chain in plan.chains for instruction in chain.instructions)


def _arena(plan: Plan, found: Lifetimes, mem_id: int, size: int) -> ArenaMap:
    storages = sorted(
        (storage for storage in found.storages if storage.mem_id == mem_id),
        key=lambda storage: (storage.offset, storage.first),
    )
    live = live_bytes(storages, found.end)
    peak = live.index(max(live)) + BEFORE
    return ArenaMap(
        mem_id=mem_id,
        bytes=size,
        live_peak_bytes=max(live),
        uncut_peak_bytes=uncut_peak_bytes(plan, found, mem_id),
        peak=peak,
        peak_instruction=_at(plan, found, peak),
        placed=tuple(_placed(plan, found, storage) for storage in storages),
    )


def _at(plan: Plan, found: Lifetimes, time: int) -> str:
    if time == BEFORE:
        return "before the first"
    return "after the last" if time >= found.end else instruction_name(plan, found.instructions[time])


def _placed(plan: Plan, found: Lifetimes, storage: Storage) -> Placed:
    tensors = [tensor for value in storage.values if (tensor := plan.tensor(value)) is not None]
    largest = max(tensors, key=lambda tensor: tensor.nbytes)
    shape = ",".join(str(size) for size in largest.sizes)
    name = f"{largest.name} " if largest.name else ""
    return Placed(
        label=f"{name}{largest.dtype.name}[{shape}]",
        kind=_kind(plan, found, storage),
        offset=storage.offset,
        bytes=storage.bytes,
        first=storage.first,
        last=storage.last,
        tensors=len(tensors),
    )


def _kind(plan: Plan, found: Lifetimes, storage: Storage) -> str:
    values = set(storage.values)
    for kind, members in (("mutable", found.mutable), ("output", plan.outputs), ("input", plan.inputs)):
        if values & set(members):
            return kind
    return "temporary"
