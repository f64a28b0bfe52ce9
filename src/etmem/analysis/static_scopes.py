"""Phases and delegates of a program with ExecuTorch inside itself, by its call stacks and its symbol table.

Nothing can stand in front of a static runtime, so no scope was recorded; but every allocation and every free has its
stack, and ``Method::execute`` is on it or is not. What a thread does with one of ExecuTorch's functions on its stack,
one event after the other, is one phase. So phases that follow each other with nothing in between are one, a phase that
allocates and frees nothing is not seen, and neither methods nor instances have names.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import numpy.typing as npt

from etmem.analysis.by_stack import backend_class, backend_of
from etmem.analysis.function_names import own_category, qualified
from etmem.analysis.symbols import Symbolizer
from etmem.model.words import EXECUTORCH, Category
from etmem.trace.tables import U32, Claim, DelegateStage, EventKind, Events, Scope, ScopeKind, Trace

NOTE = "stacks.everywhere"
"""What the agent notes when it records the stack of every allocation and free."""

_PHASES = (
    (re.compile(r"_ZN10executorch7runtime7Program4loadE"), ScopeKind.PROGRAM_LOAD),
    (re.compile(r"_ZNK10executorch7runtime7Program11load_methodE"), ScopeKind.METHOD_LOAD),
    (re.compile(r"_ZN10executorch7runtime6Method7executeE"), ScopeKind.INFERENCE),
    (re.compile(r"_ZN10executorch7runtime6MethodD[012]E"), ScopeKind.UNLOAD),
)
_STAGES = {"4init": DelegateStage.INIT, "7execute": DelegateStage.EXECUTE, "7destroy": DelegateStage.DESTROY}


@dataclass(frozen=True)
class Told:
    """What one call stack says."""

    phase: ScopeKind | None = None
    backend: str = ""
    stage: DelegateStage = DelegateStage.INIT
    category: Category | None = None
    """Of ExecuTorch's own memory, where a function of its own tells."""


NOTHING = Told()


def asked_for(trace: Trace) -> bool:
    return trace.note(NOTE) is not None and not any(scope.kind.is_phase for scope in trace.scopes.values())


def with_scopes(trace: Trace, symbolizer: Symbolizer, known: Collection[str]) -> Trace:
    """The trace with a scope for every phase and delegate that its stacks tell."""
    events = trace.events
    rows = np.flatnonzero((events.stack != 0) & np.isin(events.kind, _BY_CODE))
    stacks = np.unique(events.stack[rows]).tolist()
    told = {stack: tell(symbolizer.stack(trace.stacks.get(stack, ())), known) for stack in stacks}
    made = _Maker(trace, max(trace.scopes, default=0))
    scope: U32 = np.zeros(len(events), np.uint32)
    for thread in np.unique(events.thread[rows]).tolist():
        mine = rows[events.thread[rows] == thread]
        made.thread(thread, mine, [told[stack] for stack in events.stack[mine].tolist()], scope)
    own = np.where(events.scope != 0, events.scope, scope)
    columns = {field.name: getattr(events, field.name) for field in fields(Events)}
    scopes = {**_inside(trace.scopes, events.scope, scope), **made.scopes}
    claims = sorted((*trace.claims, *_claims(events, rows, told, scope)), key=lambda claim: claim.stamp)
    return replace(trace, events=Events(**{**columns, "scope": own}), scopes=scopes, claims=tuple(claims))


_BY_CODE = [int(kind) for kind in (EventKind.ALLOC, EventKind.FREE, EventKind.MAP, EventKind.UNMAP)]


def tell(symbols: Sequence[str], known: Collection[str]) -> Told:
    """``symbols`` are mangled, innermost first. The outermost phase counts: a load may destroy what it moved from."""
    names = list(symbols)
    phases = [kind for name in names for pattern, kind in _PHASES if pattern.match(name)]
    phase = phases[-1] if phases else None
    inference = phase is ScopeKind.INFERENCE
    category = next(filter(None, (own_category(qualified(name), inference=inference) for name in names)), None)
    if phase is None:
        return Told(category=category) if category else NOTHING
    called = next((name for name in names if backend_class(name)), None)
    if called is None:
        return Told(phase, category=category)
    stage = next((stage for word, stage in _STAGES.items() if word in called), DelegateStage.INIT)
    return Told(phase, backend_of([called], known) or "", stage, category)


class _Maker:
    """Numbers the scopes, phases by time."""

    def __init__(self, trace: Trace, last: int) -> None:
        self.scopes: dict[int, Scope] = {}
        self._trace = trace
        self._last = last
        self._inferences = 0

    def thread(self, thread: int, rows: npt.NDArray[np.intp], told: Sequence[Told], out: U32) -> None:
        for first, last in _runs([one.phase for one in told]):
            phase = told[first].phase
            if phase is None:
                continue
            outer = self._scope(phase, "", 0, thread, rows[first], rows[last])
            out[rows[first : last + 1]] = outer
            for begin, end in _runs([(one.backend, one.stage) for one in told[first : last + 1]]):
                inner = told[first + begin]
                if inner.backend:
                    span = (rows[first + begin], rows[first + end])
                    made = self._scope(ScopeKind.DELEGATE, inner.backend, outer, thread, *span, stage=inner.stage)
                    out[rows[first + begin : first + end + 1]] = made

    def _scope(
        self,
        kind: ScopeKind,
        name: str,
        parent: int,
        thread: int,
        first: np.intp,
        last: np.intp,
        stage: DelegateStage | None = None,
    ) -> int:
        self._last += 1
        # What was live before its first event belongs to it: that may be a free.
        begin, end = int(self._trace.events.stamp[first]) - 1, int(self._trace.events.stamp[last])
        # -1: which instance it is, a stack does not tell.
        a, b = (-1, int(stage)) if stage is not None else (1, self._iteration(kind))
        self.scopes[self._last] = Scope(
            id=self._last, parent=parent, kind=kind, name=name, thread=thread, a=a, b=b, flags=0,
            begin_stamp=begin, end_stamp=end, begin_ns=self._ns(begin), end_ns=self._ns(end), failed=False,
        )  # fmt: skip
        return self._last

    def _iteration(self, kind: ScopeKind) -> int:
        if kind is not ScopeKind.INFERENCE:
            return 0
        self._inferences += 1
        return self._inferences - 1

    def _ns(self, stamp: int) -> int:
        clock = self._trace.clock
        return int(np.interp(stamp, clock[:, 0], clock[:, 1])) if len(clock) else 0


def _runs(values: Sequence[object]) -> Iterator[tuple[int, int]]:
    """First and last place of each run of equal values."""
    first = 0
    for at in range(1, len(values) + 1):
        if at == len(values) or values[at] != values[first]:
            yield first, at - 1
            first = at


def _inside(scopes: Mapping[int, Scope], recorded: U32, made: U32) -> dict[int, Scope]:
    """A tag of the program's own lies in the phase that its first event lies in."""
    ids, first = np.unique(recorded, return_index=True)
    around = {int(scope): int(made[row]) for scope, row in zip(ids, first, strict=True) if scope and made[row]}
    return {
        number: replace(scope, parent=around[number]) if not scope.parent and number in around else scope
        for number, scope in scopes.items()
    }


def _claims(events: Events, rows: npt.NDArray[np.intp], told: Mapping[int, Told], scope: U32) -> Iterator[Claim]:
    """Blocks behind ExecuTorch's own allocators and loaders, and planned memory, which is allocated before a load."""
    kinds = (int(EventKind.ALLOC), int(EventKind.MAP))
    for row in rows[np.isin(events.kind[rows], kinds)].tolist():
        category = told[int(events.stack[row])].category
        if category is not None:
            place = (int(events.stamp[row]), int(events.address[row]), int(events.size[row]))
            name = "planned[1]" if category is Category.PLANNED_MEMORY else ""
            yield Claim(*place, EXECUTORCH, category.value, name, int(scope[row]))
