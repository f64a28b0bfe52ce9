"""What each instruction holds at a peak, and each delegate for its own kinds of operators."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from etmem.analysis.context import Account, Context
from etmem.analysis.instruction_names import InstructionNames
from etmem.analysis.instructions import Calls, calls
from etmem.analysis.lookup import I64, alike
from etmem.analysis.scopes import Instance
from etmem.model.summary import DelegateOperator, PeakPart
from etmem.model.words import Category

AT = ("load", "inference")


@dataclass(frozen=True)
class _Place:
    program: int
    method: str
    chain: int
    instruction: int


def peak_parts(context: Context) -> tuple[PeakPart, ...]:
    """At each peak, the instructions with what was allocated while they ran, in whichever inference, and with all
    else of the delegates that they call; the largest first. What several instances share is with the one that
    allocated it."""
    ran, names = calls(context), InstructionNames(context)
    return tuple(part for at in AT if at in context.peak_stamps for part in _parts(context, ran, names, at))


def _parts(context: Context, ran: Calls, names: InstructionNames, at: str) -> list[PeakPart]:
    stamp = context.peak_stamps[at]
    rows = np.flatnonzero(context.ledger.live(stamp) & context.ledger.counted)
    places = _Places(context, ran, names)
    sums: dict[_Place, list[int]] = defaultdict(lambda: [0, 0])
    for place, size, blocks in places.sums(rows, (context.private_bytes + context.file_bytes)[rows]):
        sums[place][0] += size
        sums[place][1] += blocks
    running = places.of_call(int(ran.at_stamps(np.array([stamp], np.int64))[0]))
    if running is not None:
        sums.setdefault(running, [0, 0])
    found = [
        PeakPart(
            at=at,
            program=place.program,
            method=place.method,
            instruction=place.instruction,
            operator=places.operators[place][0],
            instance=places.operators[place][1],
            bytes=size,
            blocks=blocks,
            running=place == running,
        )
        for place, (size, blocks) in sums.items()
    ]
    return sorted(found, key=lambda part: (-part.bytes, not part.running, part.program, part.method, part.instruction))


class _Places:
    """The instruction that each block is for."""

    def __init__(self, account: Account, ran: Calls, names: InstructionNames) -> None:
        self._account, self._ran, self._names = account, ran, names
        self.operators: dict[_Place, tuple[str, str | None]] = {}
        """(operator, delegate) of the places that were asked for."""
        self._of_instance: Mapping[int, _Place | None] = {
            index: self._called(instance) for index, instance in enumerate(account.instances)
        }
        self._of_call: dict[int, _Place] = {}

    def sums(self, rows: I64, weights: I64) -> Iterator[tuple[_Place, int, int]]:
        """Bytes and blocks of each place; a place may come several times."""
        instance = self._account.table.instance[self._account.who.scope[rows]]
        pairs, member = alike(self._ran.of_rows(rows), instance)
        sizes = np.rint(np.bincount(member, weights, pairs.shape[1])).astype(np.int64).tolist()
        counts = np.bincount(member, minlength=pairs.shape[1]).tolist()
        for (call, index), size, blocks in zip(pairs.T.tolist(), sizes, counts, strict=True):
            place = self.of_call(call) or self._of_instance.get(index)
            if place is not None:
                yield place, size, blocks

    def of_call(self, call: int) -> _Place | None:
        if call < 0:
            return None
        if call not in self._of_call:
            scope = self._ran.scopes[call]
            phase = self._account.table.scopes[int(self._ran.phase[call])]
            place = _Place(phase.a, phase.name, scope.a, scope.b)
            self.operators.setdefault(place, (self._names.operator(scope), self._names.instance(scope)))
            self._of_call[call] = place
        return self._of_call[call]

    def _called(self, instance: Instance) -> _Place | None:
        """Where the file says that a delegate is called."""
        plan = self._names.plan(instance.program, instance.method)
        call = plan.call_of(instance.index) if plan is not None else None
        if call is None:
            return None
        place = _Place(instance.program, instance.method, *call)
        self.operators[place] = (instance.backend, instance.label)
        return place


def delegate_operators(context: Context) -> tuple[DelegateOperator, ...]:
    """At the peak of inference, the blocks whose call stack names one of a delegate's own operators."""
    if "inference" not in context.peak_stamps:
        return ()
    live = context.ledger.live(context.peak_stamps["inference"]) & context.ledger.counted
    rows = np.flatnonzero(live & (context.blocks.stack > 0) & (context.table.delegate[context.who.scope] > 0))
    sums: dict[tuple[str, str | None, str, Category], list[int]] = defaultdict(lambda: [0, 0])
    known: dict[tuple[str, int, str], str | None] = {}
    sizes = (context.private_bytes + context.file_bytes)[rows].tolist()
    for row, size in zip(rows.tolist(), sizes, strict=True):
        backend = context.table.scopes[int(context.table.delegate[context.who.scope[row]])].name
        stack = (backend, int(context.blocks.stack[row]), context.function(row))
        if stack not in known:
            known[stack] = _operator(context, backend, row)
        operator, key = known[stack], context.keys[context.ledger.code[row]]
        if operator is not None:
            place = (key.owner, key.instance.label if key.instance else None, operator, key.category)
            sums[place][0] += size
            sums[place][1] += 1
    found = [DelegateOperator(*place, bytes=size, blocks=blocks) for place, (size, blocks) in sums.items()]
    return tuple(sorted(found, key=lambda one: (-one.bytes, one.owner, one.instance or "", one.operator)))


def _operator(context: Context, backend: str, row: int) -> str | None:
    description = context.descriptions.get(backend)
    operator = getattr(description, "operator", None)
    return operator(context.call_stack(row), context.function(row)) if operator is not None else None
