"""Which inference of a trace each block of an ETDump is, and whether both are of one run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from etmem.analysis.context import Context, Span
from etmem.analysis.instructions import by_inference
from etmem.devtools.etdump import Block, ETDump, ProfileEvent
from etmem.devtools.memory_events import RUN, decode
from etmem.model.errors import InputError
from etmem.model.summary import InstructionBytes
from etmem.model.words import PhaseKind
from etmem.trace.tables import Header

EXECUTE = "Execute"
LOAD = "Program::load_method"
CALLS = ("OPERATOR_CALL", "DELEGATE_CALL", "MOVE_CALL", "JF_CALL", "FREE_CALL")
"""The events that close an instruction."""

_TOLERANCE_NS = 1_000_000
"""By how much an event may lie outside of its scope: the clocks are read one after the other."""


@dataclass(frozen=True)
class Inference:
    """One inference of the trace and its block."""

    span: Span
    rows: tuple[InstructionBytes, ...]
    block: int
    """Index in the ETDump's blocks."""


def run_id(header: Header) -> str:
    """What tells one run from all others."""
    return f"{header.pid}-{header.start_realtime_ns}"


def pair(context: Context, dump: ETDump, *, same_run: bool = True) -> tuple[Inference, ...]:
    """The inferences with their blocks, in the order of both. Raises InputError where they do not fit.

    ``same_run``: also that the times are those of this run; else that the same instructions ran.
    """
    inferences = by_inference(context)
    blocks = [index for index, block in enumerate(dump.blocks) if block.name == EXECUTE]
    if len(blocks) != len(inferences):
        raise wrong(dump, f"it has {len(blocks)} inferences, the trace {len(inferences)}")
    found = tuple(Inference(span, rows, block) for (span, rows), block in zip(inferences, blocks, strict=True))
    for number, one in enumerate(found):
        _check_instructions(dump, number, one)
    if same_run:
        _check_run(context, dump, found)
    return found


def calls_of(block: Block) -> tuple[ProfileEvent, ...]:
    return tuple(event for event in block.profile_events if event.name in CALLS and event.delegate_name is None)


def rows_of(inference: Inference) -> tuple[InstructionBytes, ...]:
    return tuple(row for row in inference.rows if row.reason is None)


def _check_instructions(dump: ETDump, number: int, one: Inference) -> None:
    there = [(event.chain, event.instruction) for event in calls_of(dump.blocks[one.block])]
    ran = [(row.chain, row.instruction) for row in rows_of(one)]
    if ran and there != ran:
        raise wrong(dump, f"its inference {number} has {len(there)} instructions, the trace's other {len(ran)}")


def _check_run(context: Context, dump: ETDump, found: Sequence[Inference]) -> None:
    named = {
        value.get("run")
        for block in dump.blocks
        for event in block.profile_events
        if event.delegate_name == RUN and (value := decode(event.metadata)) is not None
    }
    if named:
        if named != {run_id(context.trace.header)}:
            raise wrong(dump, "its memory is that of another trace")
        return
    low, high = _offsets(context, dump, found)
    if low > high + _TOLERANCE_NS:
        raise wrong(dump, "its times are those of another run")


def _offsets(context: Context, dump: ETDump, found: Sequence[Inference]) -> tuple[int, int]:
    """The clocks differ by a constant, which each instruction bounds: its event lies inside its scope. Bounds that
    exclude each other cannot be of one run."""
    scopes = {
        (int(context.table.phase[scope.id]), scope.a, scope.b): scope
        for scope in context.table.scopes.values()
        if scope.kind.name == "INSTRUCTION" and scope.name in CALLS
    }
    low, high = -(2**63), 2**63
    for one in found:
        for event in calls_of(dump.blocks[one.block]):
            scope = scopes.get((one.span.scope.id, event.chain, event.instruction))
            if scope is not None and scope.end_ns is not None:
                low = max(low, scope.begin_ns - event.start)
                high = min(high, scope.end_ns - event.end)
    return low, high


def loads(context: Context) -> tuple[Span, ...]:
    return context.spans_of(PhaseKind.METHOD_LOAD)


def wrong(dump: ETDump, why: str) -> InputError:
    return InputError(
        f"{dump.path} is the ETDump of another run: {why}", "Give the one that was written by the run of this trace."
    )
