"""What lies in planned memory: which tensor, how long, written by whom, and how much of it is used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

from etmem.analysis.context import Account
from etmem.analysis.instruction_names import InstructionNames, PlanFacts
from etmem.model.summary import PlannedTensor
from etmem.model.words import PhaseKind
from etmem.program.lifetimes import BEFORE, Storage
from etmem.program.model import Dynamism, Tensor
from etmem.trace.tables import ScopeKind

LARGEST = 200
"""Rows per method."""

USED = "used"
"""Name of the claims by which the hooks tell how much of a dynamic tensor a run uses."""


@dataclass(frozen=True)
class _Used:
    """Of one method: bytes by (mem_id, offset) and the instruction that told them, largest of all inferences."""

    bytes: Mapping[tuple[int, int, int], int]

    def of(self, storage: Storage, offset: int) -> int | None:
        """Of a tensor at an offset of its buffer while a storage is in use: the place serves others before and
        after."""
        times = range(storage.first, storage.last + 1)
        known = [self.bytes[place] for time in times if (place := (storage.mem_id, offset, time)) in self.bytes]
        return max(known, default=None)


def planned_tensors(account: Account) -> tuple[PlannedTensor, ...]:
    """The largest storages of every loaded method, largest first."""
    names = InstructionNames(account)
    methods = dict.fromkeys((span.scope.a, span.scope.name) for span in account.spans_of(PhaseKind.METHOD_LOAD))
    found: list[PlannedTensor] = []
    for program, method in methods:
        facts = names.plan(program, method)
        if facts is not None:
            rows = sorted(_method(account, program, facts), key=lambda row: (-row.planned_bytes, row.first, row.offset))
            found += rows[:LARGEST]
    return tuple(found)


def _method(account: Account, program: int, facts: PlanFacts) -> Iterator[PlannedTensor]:
    plan, used = facts.plan, _used(account, program, facts)
    shapes = {spec.index: spec.shape for spec in account.options.target.inputs if spec.method == plan.name}
    inputs = {value: shapes[index] for index, value in enumerate(plan.inputs) if index in shapes}
    live = facts.planned_live
    top = live.index(max(live)) if live else BEFORE
    for storage in facts.lifetimes.storages:
        tensors = [(value, tensor) for value in storage.values if (tensor := plan.tensor(value)) is not None]
        _, largest = max(tensors, key=lambda pair: pair[1].nbytes)
        yield PlannedTensor(
            program=program,
            method=plan.name,
            mem_id=storage.mem_id,
            offset=storage.offset,
            planned_bytes=storage.bytes,
            used_bytes=_used_bytes(storage, tensors, inputs, used),
            dtype=largest.dtype.name,
            shape=largest.sizes,
            first=storage.first,
            last=storage.last,
            writer=_writer(facts, storage),
            at_peak=storage.first <= top <= storage.last,
        )


def _writer(facts: PlanFacts, storage: Storage) -> str:
    if storage.first == BEFORE:
        return "state" if any(value in facts.lifetimes.mutable for value in storage.values) else "input"
    if storage.first >= len(facts.lifetimes.instructions):
        return "output"
    return facts.name(facts.lifetimes.instructions[storage.first])


def _used_bytes(
    storage: Storage,
    tensors: list[tuple[int, Tensor]],
    inputs: Mapping[int, tuple[int, ...]],
    used: _Used,
) -> int | None:
    """None where one of its tensors is dynamic and no run told its shape."""
    if all(tensor.dynamism is Dynamism.STATIC for _, tensor in tensors):
        return storage.bytes
    known = [_one(storage, value, tensor, inputs, used) for value, tensor in tensors]
    sizes = [size for size in known if size is not None]
    return min(max(sizes), storage.bytes) if len(sizes) == len(known) else None


def _one(
    storage: Storage, value: int, tensor: Tensor, inputs: Mapping[int, tuple[int, ...]], used: _Used
) -> int | None:
    if tensor.dynamism is Dynamism.STATIC:
        return tensor.nbytes
    if value in inputs:
        return prod(inputs[value]) * tensor.dtype.bytes
    assert tensor.allocation is not None
    return used.of(storage, tensor.allocation.offset)


def _used(account: Account, program: int, facts: PlanFacts) -> _Used:
    """Claims named ``used`` that lie in the planned buffers of a method."""
    phases = account.table.phase
    buffers: list[tuple[int, int, int]] = []
    found: dict[tuple[int, int, int], int] = {}
    for claim in account.trace.claims:
        phase = account.table.scopes.get(int(phases[claim.scope]) if claim.scope < len(phases) else 0)
        if phase is None or (phase.a, phase.name) != (program, facts.plan.name):
            continue
        if claim.name.startswith("planned["):
            buffers.append((claim.address, claim.bytes, int(claim.name[len("planned[") : -1])))
        elif claim.name == USED:
            told_by = account.table.scopes[claim.scope]
            time = facts.time(told_by.a, told_by.b) if told_by.kind is ScopeKind.INSTRUCTION else None
            # Outside of instructions it is the method's outputs that are told, after the last.
            time = facts.lifetimes.end if time is None else time
            for start, size, mem_id in buffers:
                if start <= claim.address < start + size:
                    place = (mem_id, claim.address - start, time)
                    found[place] = max(found.get(place, 0), claim.bytes)
    return _Used(found)
