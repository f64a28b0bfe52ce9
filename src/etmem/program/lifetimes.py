"""When each place in planned memory is in use, and how many bytes are at once.

Time counts the instructions of a method, all chains one after another; -1 is before the first (inputs and
mutable buffers are there then), ``Lifetimes.end`` after the last (outputs and mutable buffers are there then).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from etmem.program.model import DelegateCall, KernelCall, MoveCall, ScalarList, Tensor, TensorList, ValueKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from etmem.program.model import Instruction, Plan

BEFORE = -1


@dataclass(frozen=True)
class Storage:
    """A place in planned memory for as long as it holds one thing. Views of one tensor are one storage."""

    mem_id: int
    offset: int
    bytes: int
    first: int
    """The instruction that fills it, or ``BEFORE``."""
    last: int
    values: tuple[int, ...]


@dataclass(frozen=True)
class Lifetimes:
    """The planned memory of one method."""

    instructions: tuple[Instruction, ...]
    storages: tuple[Storage, ...]
    mutable: frozenset[int]
    """Values that keep their content from one inference to the next (the model's mutable buffers)."""

    @property
    def end(self) -> int:
        return len(self.instructions)

    @property
    def peak_bytes(self) -> int:
        """The most bytes in use at once. The arena is at least as large; alignment and gaps come on top."""
        return peak_bytes(self.storages)


def lifetimes(plan: Plan) -> Lifetimes:
    instructions = tuple(entry for chain in plan.chains for entry in chain.instructions)
    mutable = frozenset(_mutable(plan, instructions))
    uses: dict[int, list[int]] = defaultdict(list)
    for value in plan.inputs:
        uses[value].append(BEFORE)
    for value in mutable:
        uses[value] += [BEFORE, len(instructions)]
    for time, instruction in enumerate(instructions):
        for value in mentioned(plan, instruction):
            uses[value].append(time)
    for output in plan.outputs:
        for value in expanded(plan, output):
            uses[value].append(len(instructions))
    single = [
        Storage(tensor.allocation.mem_id, tensor.allocation.offset, tensor.nbytes, min(times), max(times), (value,))
        for value, times in uses.items()
        # An empty tensor has a place and takes none of it.
        if (tensor := plan.tensor(value)) is not None and tensor.allocation is not None and tensor.nbytes
    ]
    return Lifetimes(instructions, tuple(_merged(single)), mutable)


def peak_bytes(storages: Iterable[Storage]) -> int:
    """The most bytes that these have in use at once."""
    changes: dict[int, int] = defaultdict(int)
    for storage in storages:
        changes[storage.first] += storage.bytes
        changes[storage.last + 1] -= storage.bytes
    return max(accumulate(changes[time] for time in sorted(changes)), default=0)


def mentioned(plan: Plan, instruction: Instruction) -> Iterator[int]:
    """The values that an instruction reads or writes, lists taken apart."""
    if isinstance(instruction, KernelCall | DelegateCall):
        for value in instruction.args:
            yield from expanded(plan, value)
    elif isinstance(instruction, MoveCall):
        yield from (instruction.source, instruction.target)


def expanded(plan: Plan, value: int) -> Iterator[int]:
    """A value, and those in it if it is a list."""
    yield value
    found = plan.values[value]
    if isinstance(found, TensorList):
        yield from (item for item in found.items if item >= 0)
    elif isinstance(found, ScalarList) and found.kind is ValueKind.INT_LIST:
        yield from (int(item) for item in found.items)


def written(plan: Plan, call: KernelCall) -> tuple[int, ...]:
    """The tensors that a kernel writes: ExecuTorch passes what it returns last, in a list if it is several."""
    return tuple(value for value in expanded(plan, call.args[-1]) if plan.tensor(value)) if call.args else ()


def _mutable(plan: Plan, instructions: tuple[Instruction, ...]) -> Iterator[int]:
    """Planned values that a kernel reads before anything has written them, or that a copy_ writes back to.

    What only one instruction mentions, and not as what it writes, is scratch that the exporter has planned for it.
    """
    users = Counter(value for entry in instructions for value in set(mentioned(plan, entry)))
    known = {value for entry in plan.inputs for value in expanded(plan, entry)}
    for instruction in instructions:
        values = tuple(mentioned(plan, instruction))
        fresh = [value for value in values if value not in known and _planned(plan, value)]
        if isinstance(instruction, KernelCall):
            outputs = written(plan, instruction)
            yield from (
                value
                for value in fresh
                if (_in_place(plan, instruction, value) if value in outputs else users[value] > 1)
            )
            if plan.operators[instruction.operator].name.endswith("::copy_"):
                yield from (value for value in outputs if value not in plan.inputs)
        known.update(values)


def _in_place(plan: Plan, call: KernelCall, value: int) -> bool:
    """Whether a kernel reads what it writes. An output that is not read is passed twice, at the end."""
    return plan.tensor(call.args[-1]) is not None and value in call.args[:-2]


def _planned(plan: Plan, value: int) -> bool:
    tensor: Tensor | None = plan.tensor(value)
    return tensor is not None and tensor.allocation is not None


def _merged(storages: list[Storage]) -> Iterator[Storage]:
    """Joins storages that overlap in place and in time: the planner never does that but for views."""
    live: list[Storage] = []
    for storage in sorted(storages, key=lambda storage: (storage.mem_id, storage.first, storage.offset)):
        # Nothing that comes later can overlap what has ended: the list stays short.
        joined, kept = storage, []
        for other in live:
            if other.mem_id != storage.mem_id or other.last < storage.first:
                yield other
            elif _overlap(other, joined):
                joined = _join(other, joined)
            else:
                kept.append(other)
        live = [*kept, joined]
    yield from live


def _overlap(one: Storage, other: Storage) -> bool:
    in_place = one.offset < other.offset + other.bytes and other.offset < one.offset + one.bytes
    return in_place and one.first <= other.last and other.first <= one.last


def live_bytes(storages: Iterable[Storage], end: int) -> list[int]:
    """Bytes in use from before the first instruction to after the last (``end``, of the lifetimes)."""
    changes = [0] * (end + 3)
    for storage in storages:
        changes[storage.first - BEFORE] += storage.bytes
        changes[storage.last + 1 - BEFORE] -= storage.bytes
    return list(accumulate(changes))[:-1]


def _join(one: Storage, other: Storage) -> Storage:
    start = min(one.offset, other.offset)
    end = max(one.offset + one.bytes, other.offset + other.bytes)
    return Storage(
        mem_id=one.mem_id,
        offset=start,
        bytes=end - start,
        first=min(one.first, other.first),
        last=max(one.last, other.last),
        values=one.values + other.values,
    )
