"""An ETDump with memory in it: beside each instruction's time, what it allocated and what was live."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from etmem.analysis.accounting import every_block
from etmem.analysis.context import Context
from etmem.analysis.instructions import calls
from etmem.devtools.etdump import UNSET, AllocationEvent, Block, ETDump, Event, ProfileEvent
from etmem.devtools.memory_events import INSTRUCTION, RUN, encode, memory_of
from etmem.devtools.pairing import CALLS, Inference, loads, pair, rows_of, run_id
from etmem.model.words import PhaseKind


def with_memory(dump: ETDump, context: Context, *, allocations: bool = False) -> ETDump:
    """Adds one event per instruction and one per inference; with ``allocations``, all allocation events too.

    The times may be those of another run of the same plan: a tracer makes delegates allocate for their timings,
    so the memory is that of a run without one. Raises InputError where the same instructions did not run.
    """
    blocks = list(dump.blocks)
    made = _Allocations.of(context) if allocations else None
    for number, inference in enumerate(pair(context, dump, same_run=False)):
        blocks[inference.block] = _inference(blocks[inference.block], inference, context, number, made)
    if made is not None:
        blocks = _loads(blocks, context, made)
    return replace(dump, blocks=tuple(blocks))


def _inference(block: Block, inference: Inference, context: Context, number: int, made: _Allocations | None) -> Block:
    rows = iter(rows_of(inference))
    phase = inference.span.scope.id
    book = _Book(block)
    events: list[Event] = []
    for event in block.events:
        events.append(event)
        if isinstance(event, ProfileEvent) and event.name in CALLS and event.delegate_name is None:
            row = next(rows, None)
            if row is None:
                continue
            values = {**memory_of(row), "operator": row.operator}
            events.append(_beside(event, INSTRUCTION, encode(values)))
            if made is not None:
                events += book.events(made.inside(phase, event.chain, event.instruction))
    if made is not None:
        events += book.events(made.rest(phase))
    last = block.profile_events[-1] if block.profile_events else None
    if last is not None:
        total = context.phases[context.spans.index(inference.span)]
        values = {
            "run": run_id(context.trace.header),
            "method": inference.span.scope.name,
            "inference": number,
            "live_before_bytes": total.live_start.private_bytes + total.live_start.file_bytes,
            "live_after_bytes": total.live_end.private_bytes + total.live_end.file_bytes,
            "peak_bytes": total.peak.private_bytes + total.peak.file_bytes,
            "allocated_bytes": total.allocated_bytes,
            "allocations": total.allocations,
        }
        events.append(_beside(replace(last, chain=UNSET, instruction=UNSET), RUN, encode(values)))
    return replace(block, allocators=book.names(), events=tuple(events))


def _beside(event: ProfileEvent, identifier: str, metadata: bytes) -> ProfileEvent:
    """An event of no duration at the end of another: its time adds nothing to any sum."""
    return ProfileEvent(None, event.chain, event.instruction, UNSET, identifier, metadata, event.end, event.end)


def _loads(blocks: list[Block], context: Context, made: _Allocations) -> list[Block]:
    """What was allocated while the program and its methods were loaded, in the first block that is no inference."""
    phases = [span.scope.id for span in context.spans if span.kind.is_load]
    place = next((index for index, block in enumerate(blocks) if block.name != "Execute"), None)
    if place is None or not loads(context):
        return blocks
    old = blocks[place]
    book = _Book(old)
    events = [event for phase in phases for event in book.events(made.rest(phase))]
    blocks[place] = replace(old, allocators=book.names(), events=(*old.events, *events))
    return blocks


class _Book:
    """Numbers the new allocators of one block behind those that it has, from 1."""

    def __init__(self, block: Block) -> None:
        self._registered = block.allocators
        self._ids: dict[str, int] = {}

    def events(self, made: Sequence[tuple[str, int]]) -> Iterator[AllocationEvent]:
        for name, size in made:
            yield AllocationEvent(self._ids.setdefault(name, len(self._registered) + len(self._ids) + 1), size)

    def names(self) -> tuple[str, ...]:
        return (*self._registered, *self._ids)


@dataclass(frozen=True)
class _Allocations:
    """Every counted allocation as (owner/category, bytes), by the instruction of an inference or by the phase."""

    by_call: dict[tuple[int, int, int], list[tuple[str, int]]]
    by_phase: dict[int, list[tuple[str, int]]]

    def inside(self, phase: int, chain: int, instruction: int) -> list[tuple[str, int]]:
        return self.by_call.pop((phase, chain, instruction), [])

    def rest(self, phase: int) -> list[tuple[str, int]]:
        return self.by_phase.pop(phase, [])

    @staticmethod
    def of(context: Context) -> _Allocations:
        by_call: dict[tuple[int, int, int], list[tuple[str, int]]] = defaultdict(list)
        by_phase: dict[int, list[tuple[str, int]]] = defaultdict(list)
        account = every_block(context)
        inferences = {span.scope.id for span in account.spans if span.kind is PhaseKind.INFERENCE}
        ran = calls(account)
        rows = np.flatnonzero(account.ledger.counted & account.fresh & (account.who.phase > 0))
        columns = (ran.of_rows(rows), account.who.phase[rows], account.ledger.code[rows], account.ledger.both[rows])
        for call, phase, code, size in zip(*(column.tolist() for column in columns), strict=True):
            key = account.keys[code]
            entry = (f"{key.owner}/{key.category.value}", size)
            if call >= 0 and phase in inferences:
                scope = ran.scopes[call]
                by_call[phase, scope.a, scope.b].append(entry)
            else:
                by_phase[phase].append(entry)
        return _Allocations(dict(by_call), dict(by_phase))
