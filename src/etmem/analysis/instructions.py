"""What each instruction of a method allocates, frees and has live while it runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from etmem.analysis.context import Account, Span
from etmem.analysis.instruction_names import InstructionNames, PlanFacts
from etmem.analysis.lookup import I64, alike
from etmem.analysis.scopes import ScopeTable, end_of
from etmem.analysis.timeline import Timeline, timeline
from etmem.model.summary import InstructionBytes
from etmem.model.words import NoInstruction, PhaseKind
from etmem.trace.tables import U32, Scope, ScopeKind

TEMP_ALLOCATOR = "temp_allocator"
FIRST, LATER = "first", "later"

_LOAD_REASONS = {
    PhaseKind.PROGRAM_LOAD: NoInstruction.PROGRAM_LOAD,
    PhaseKind.METHOD_LOAD: NoInstruction.METHOD_LOAD,
    PhaseKind.UNLOAD: NoInstruction.UNLOAD,
}


@dataclass(frozen=True)
class Calls:
    """Each time that an instruction ran, by begin; row ``i`` is ``scopes[i]``, its outermost scope."""

    account: Account
    scopes: tuple[Scope, ...]
    of_scope: I64
    """By scope id, the call that it is part of, -1 for none."""

    @cached_property
    def begin(self) -> I64:
        return np.array([scope.begin_stamp for scope in self.scopes], np.int64)

    @cached_property
    def end(self) -> I64:
        last = self.account.last_stamp
        return np.array([min(end_of(scope), last) for scope in self.scopes], np.int64)

    @cached_property
    def phase(self) -> U32:
        """Id of the inference that each call is part of."""
        return self.account.table.phase[[scope.id for scope in self.scopes]]

    def of_rows(self, rows: I64) -> I64:
        """The call whose work the allocation of each block was, -1 for none: a thread that the delegate
        started in an earlier phase works in none of this one's."""
        who = self.account.who
        call = self.of_scope[who.scope[rows]]
        same = call >= 0
        same[same] = self.phase[call[same]] == who.phase[rows][same]
        return np.where(same, call, -1)

    def at_stamps(self, stamps: I64) -> I64:
        """The call that was running at each stamp, the latest where several were; -1 for none."""
        if not self.scopes:
            return np.full(len(stamps), -1, np.int64)
        place = np.searchsorted(self.begin, stamps, "right") - 1
        inside = (place >= 0) & (stamps <= self.end[np.maximum(place, 0)])
        return np.where(inside, place, -1)


def calls(account: Account) -> Calls:
    """The outermost INSTRUCTION scopes of all phases."""
    table = account.table
    of_scope = np.full(len(table.phase), -1, np.int64)
    shown = {span.scope.id for span in account.spans}  # of a part of a recording not all phases
    found: list[Scope] = []
    # A parent begins before its children, so its row is ready when theirs are made.
    for scope in sorted(table.scopes.values(), key=lambda scope: scope.begin_stamp):
        outer = of_scope[scope.parent] if scope.parent in table.scopes else -1
        if scope.kind.is_phase:
            continue
        if outer < 0 and scope.kind is ScopeKind.INSTRUCTION and int(table.phase[scope.id]) in shown:
            outer = len(found)
            found.append(scope)
        of_scope[scope.id] = outer
    return Calls(account, tuple(found), of_scope)


def reasons(calls: Calls, rows: I64) -> tuple[tuple[NoInstruction | None, ...], I64]:
    """Why each block belongs to no instruction: the reasons that occur, and the index in them of each block's.

    None stands for blocks that do belong to one, and for those of no phase.
    """
    account, who = calls.account, calls.account.who
    kinds = {span.scope.id: span.kind for span in account.spans}
    told = set(calls.phase.tolist())
    loose = (calls.of_rows(rows) < 0) & np.isin(who.phase[rows], list(kinds))
    distinct, of_row = alike(loose, who.phase[rows], who.scope[rows], who.ambiguous[rows])
    found: dict[NoInstruction | None, int] = {}
    numbers = [
        found.setdefault(_reason(account.table, kinds, told, phase, scope, bool(several)) if none else None, len(found))
        for none, phase, scope, several in distinct.T.tolist()
    ]
    return tuple(found), np.array(numbers, np.int64)[of_row]


def _reason(
    table: ScopeTable, kinds: Mapping[int, PhaseKind], told: set[int], phase: int, scope: int, ambiguous: bool
) -> NoInstruction:
    kind = kinds[phase]
    if kind is not PhaseKind.INFERENCE:
        return _LOAD_REASONS[kind]
    if ambiguous:
        return NoInstruction.SEVERAL_INFERENCES
    if int(table.phase[scope]) != phase:
        return NoInstruction.OWN_THREAD
    return NoInstruction.BETWEEN_INSTRUCTIONS if phase in told else NoInstruction.NO_EVENT_TRACER


def instructions(account: Account) -> tuple[InstructionBytes, ...]:
    """Two rows per instruction and method, those of its first inference and those of all later ones."""
    return tuple(_merged([row for _, rows in by_inference(account) for row in rows]))


def by_inference(account: Account) -> tuple[tuple[Span, tuple[InstructionBytes, ...]], ...]:
    """Each inference with one row per call, in the order in which they ran, and those of no instruction behind."""
    inferences = account.spans_of(PhaseKind.INFERENCE)
    if not inferences:
        return ()
    found = _each(account, calls(account), inferences)
    return tuple((span, tuple(found[span.scope.id])) for span in inferences)


@dataclass(frozen=True)
class _Column:
    """Sums over counted blocks by call, and by inference and reason for those of none."""

    by_call: I64
    by_reason: Mapping[tuple[int, NoInstruction], int]


def _each(account: Account, ran: Calls, inferences: Sequence[Span]) -> dict[int, list[InstructionBytes]]:
    """By id of the inference, one row per call, then those of no instruction."""
    weights = account.ledger.both
    allocated, count = _allocated(ran, account.ledger.counted & account.fresh, weights)
    freed = _freed(account, ran, inferences, weights)
    temp, temp_peak = _temp(account, ran)
    total = account.ledger.total
    before, after = total.values_at(ran.begin), total.values_at(ran.end)
    peak = total.peaks(ran.begin, ran.end)
    names = InstructionNames(account)
    numbers = dict(_first_or_later(inferences))
    found: dict[int, list[InstructionBytes]] = {span.scope.id: [] for span in inferences}
    for index, scope in enumerate(ran.scopes):
        phase = account.table.scopes[int(ran.phase[index])]
        if phase.id not in found:
            continue
        plan = names.plan(phase.a, phase.name)
        found[phase.id].append(
            InstructionBytes(
                program=phase.a,
                method=phase.name,
                chain=scope.a,
                instruction=scope.b,
                operator=names.operator(scope),
                instance=names.instance(scope),
                reason=None,
                at=numbers[phase.id],
                inferences=1,
                live_before_bytes=int(before[index]),
                live_after_bytes=int(after[index]),
                peak_bytes=int(peak[index]),
                allocated_bytes=int(allocated.by_call[index]),
                allocations=int(count.by_call[index]),
                freed_bytes=int(freed.by_call[index]),
                temp_bytes=int(temp[index]),
                temp_peak_bytes=int(temp_peak[index]),
                planned_live_bytes=_planned(plan, scope),
            )
        )
    for span in inferences:
        found[span.scope.id] += _without(span, total, allocated, count, freed, numbers[span.scope.id])
    return found


def _without(
    span: Span, total: Timeline, allocated: _Column, count: _Column, freed: _Column, at: str
) -> list[InstructionBytes]:
    """The rows of one inference that have a reason in place of an instruction."""
    phase = span.scope.id
    present = dict.fromkeys(reason for owner, reason in (*count.by_reason, *freed.by_reason) if owner == phase)
    return [
        InstructionBytes(
            program=span.scope.a,
            method=span.scope.name,
            chain=None,
            instruction=None,
            operator="",
            instance=None,
            reason=reason,
            at=at,
            inferences=1,
            live_before_bytes=total.at(span.begin),
            live_after_bytes=total.at(span.end),
            peak_bytes=total.peak(span.begin, span.end)[1],
            allocated_bytes=allocated.by_reason.get((phase, reason), 0),
            allocations=count.by_reason.get((phase, reason), 0),
            freed_bytes=freed.by_reason.get((phase, reason), 0),
            temp_bytes=0,
            temp_peak_bytes=0,
            planned_live_bytes=None,
        )
        for reason in present
    ]


def _planned(plan: PlanFacts | None, scope: Scope) -> int | None:
    return plan.live_bytes(scope.a, scope.b) if plan is not None else None


_PIECE = 1 << 20
"""Blocks that are looked at at a time: columns over all of them would need several times their memory."""


def _pieces(chosen: npt.NDArray[np.bool_]) -> Iterator[I64]:
    """The rows that are chosen, piece by piece."""
    for at in range(0, len(chosen), _PIECE):
        yield np.flatnonzero(chosen[at : at + _PIECE]) + at


@dataclass
class _Sums:
    """A column while it is added up."""

    by_call: I64
    by_reason: dict[tuple[int, NoInstruction], int]

    @classmethod
    def over(cls, ran: Calls) -> _Sums:
        return cls(np.zeros(len(ran.scopes), np.int64), {})

    def add_to(self, place: tuple[int, NoInstruction], size: int) -> None:
        self.by_reason[place] = self.by_reason.get(place, 0) + size

    def column(self) -> _Column:
        return _Column(self.by_call, self.by_reason)


def _allocated(ran: Calls, chosen: npt.NDArray[np.bool_], weights: I64) -> tuple[_Column, _Column]:
    """By whose work the chosen blocks were allocated: their weights, and how many they are."""
    bytes_, count = _Sums.over(ran), _Sums.over(ran)
    for rows in _pieces(chosen):
        call = ran.of_rows(rows)
        inside = call >= 0
        names, reason = reasons(ran, rows)
        places, place = alike(ran.account.who.phase[rows], reason)
        for found, column in ((bytes_, weights[rows]), (count, ran.account.blocks.count[rows])):
            found.by_call += _sums(call[inside], column[inside], len(ran.scopes))
            sums = _sums(place, column, places.shape[1]).tolist()
            for (owner, number), size in zip(places.T.tolist(), sums, strict=True):
                if (name := names[number]) is not None:
                    found.add_to((owner, name), size)
    return bytes_.column(), count.column()


def _freed(account: Account, ran: Calls, inferences: Sequence[Span], weights: I64) -> _Column:
    """Live memory that ended, by stamp: whoever frees, it is while this instruction runs that it ends.

    What a partial munmap or mprotect leaves of a block begins as a block of its own at the same stamp: it did
    not end.
    """
    counted, blocks = account.ledger.counted, account.blocks
    found = _Sums.over(ran)
    told = set(ran.phase.tolist())
    ended = counted & (blocks.end <= np.uint64(account.last_stamp))
    for chosen, column, sign in ((ended, blocks.end, 1), (counted & ~account.fresh, blocks.begin, -1)):
        for rows in _pieces(chosen):
            stamps, sizes = column[rows].astype(np.int64), sign * weights[rows]
            call = ran.at_stamps(stamps)
            found.by_call += _sums(call[call >= 0], sizes[call >= 0], len(ran.scopes))
            for span, size in _within(inferences, stamps[call < 0], sizes[call < 0]):
                known = span.scope.id in told
                reason = NoInstruction.BETWEEN_INSTRUCTIONS if known else NoInstruction.NO_EVENT_TRACER
                found.add_to((span.scope.id, reason), size)
    return found.column()


def _within(spans: Sequence[Span], stamps: I64, sizes: I64) -> Iterator[tuple[Span, int]]:
    """The sizes whose stamps lie in each phase, added up; phases in which none lies are left out."""
    order = np.argsort(stamps, kind="stable")
    sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes[order])])
    edges = np.array([(span.begin, span.end) for span in spans], np.int64).reshape(-1, 2)
    first, after = (np.searchsorted(stamps[order], edges[:, side], "right") for side in (0, 1))
    for index in np.flatnonzero(first < after).tolist():
        yield spans[index], int(sums[after[index]] - sums[first[index]])


def _temp(account: Account, ran: Calls) -> tuple[I64, I64]:
    """Asked of temp allocators in each call, and the most of it at once: upstream resets them after each."""
    extents = account.extents
    temp = {heap.id for heap in account.trace.heaps.values() if heap.name == TEMP_ALLOCATOR}
    rows = np.flatnonzero(np.isin(extents.heap, sorted(temp)))
    sizes = extents.bytes[rows].astype(np.int64)
    call = ran.of_scope[account.table.known(extents.scope[rows])]
    line = timeline(extents.begin[rows], extents.end[rows], sizes, account.ledger.window)
    return _sums(call[call >= 0], sizes[call >= 0], len(ran.scopes)), line.peaks(ran.begin, ran.end)


def _sums(groups: npt.NDArray[np.int64], weights: I64, size: int) -> I64:
    """Exact below 2^53, that is for 9 PB."""
    return np.rint(np.bincount(groups, weights, size)).astype(np.int64)


def _first_or_later(inferences: Sequence[Span]) -> Iterable[tuple[int, str]]:
    seen: set[tuple[int, str]] = set()
    for span in inferences:
        method = (span.scope.a, span.scope.name)
        yield span.scope.id, LATER if method in seen else FIRST
        seen.add(method)


def _merged(rows: Sequence[InstructionBytes]) -> list[InstructionBytes]:
    """Rows of one method, instruction and ``at`` as one."""
    groups: dict[tuple[object, ...], list[InstructionBytes]] = defaultdict(list)
    for row in rows:
        place = (row.program, row.method, row.at, row.chain, row.instruction, row.reason)
        groups[place].append(row)
    found = [merge(group) for group in groups.values()]
    order = {method: place for place, method in enumerate(dict.fromkeys((row.program, row.method) for row in rows))}
    return sorted(found, key=lambda row: (order[row.program, row.method], row.at != FIRST, row.instruction is None))


def merge(rows: Sequence[InstructionBytes]) -> InstructionBytes:
    """Rows of one instruction in several inferences as one."""
    if len(rows) == 1:
        return rows[0]
    return replace(
        rows[0],
        inferences=len(rows),
        live_before_bytes=max(row.live_before_bytes for row in rows),
        live_after_bytes=max(row.live_after_bytes for row in rows),
        peak_bytes=max(row.peak_bytes for row in rows),
        allocated_bytes=sum(row.allocated_bytes for row in rows),
        allocations=sum(row.allocations for row in rows),
        freed_bytes=sum(row.freed_bytes for row in rows),
        temp_bytes=sum(row.temp_bytes for row in rows),
        temp_peak_bytes=max(row.temp_peak_bytes for row in rows),
    )
