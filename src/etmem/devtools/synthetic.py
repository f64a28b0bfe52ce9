"""An ETDump made of a trace: the times of its phases and instructions, for a run that recorded none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from etmem.devtools.etdump import UNSET, Block, ETDump, ProfileEvent
from etmem.trace.tables import Scope, ScopeKind

if TYPE_CHECKING:
    from etmem.analysis.context import Context


def etdump_of(context: Context) -> ETDump:
    """One block for all method loads, one for each inference; etmem's own time is in them."""
    children: dict[int, list[Scope]] = {}
    for scope in sorted(context.table.scopes.values(), key=lambda scope: scope.begin_stamp):
        if scope.kind is ScopeKind.INSTRUCTION:
            children.setdefault(int(context.table.phase[scope.id]), []).append(scope)
    blocks = [Block("Default", UNSET, (), tuple(_load(context)))]
    for span in context.spans:
        if span.kind.value == "inference":
            inside = sorted(children.get(span.scope.id, ()), key=lambda scope: scope.end_stamp or span.end)
            events = [_event(context, scope, scope.name, scope.a, scope.b) for scope in inside]
            events.append(_event(context, span.scope, "Method::execute", UNSET, 0))
            blocks.append(Block("Execute", UNSET, (), tuple(events)))
    return ETDump(etdump_of.__name__, 0, tuple(blocks))


def _load(context: Context) -> Iterator[ProfileEvent]:
    for span in context.spans:
        if span.kind.value == "method_load":
            yield _event(context, span.scope, "Program::load_method", UNSET, 0)


def _event(context: Context, scope: Scope, name: str, chain: int, instruction: int) -> ProfileEvent:
    end = scope.end_ns if scope.end_ns is not None else context.trace.header.start_monotonic_ns
    return ProfileEvent(name, chain, instruction, UNSET, None, None, scope.begin_ns, max(end, scope.begin_ns))
