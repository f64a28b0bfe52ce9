"""Calls of the C ABI that do not fit together: what the agent did not follow, and what the trace shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from etmem.analysis.context import Account
from etmem.analysis.named_scopes import LOADERS_OWN
from etmem.model.summary import Issue
from etmem.model.words import EXECUTORCH, Category, IssueCode, Severity
from etmem.trace.arenas import Arena, arenas
from etmem.trace.tables import EventKind, MisuseKind, ScopeKind

_HINT = "docs/reference/c-abi.md says what each call expects"
_CATEGORIES = frozenset(category.value for category in Category)
_WORDS = {
    MisuseKind.SCOPE_END: "scope {name} was ended twice, or on a thread that did not begin it: the end is left out",
    MisuseKind.SCOPE_OPEN: "scope {name} was still open when the one around it ended: it ended there",
    MisuseKind.HEAP_TWICE: "heap {name} is registered twice: both count as one",
    MisuseKind.RANGE: "{name} was reported with an address or a size that no memory has: it is left out",
    MisuseKind.SCOPE_KIND: "scope {name} is of a kind that there is not: it is left out",
}


def misuse(account: Account) -> Iterator[Issue]:
    """One issue per kind and name, with how often."""
    for text, count in Counter(_texts(account)).items():
        times = f" ({count:,} times)" if count > 1 else ""
        yield Issue(IssueCode.API_MISUSE, Severity.WARNING, f"{text}{times}", _HINT, {"times": count})


def _texts(account: Account) -> Iterator[str]:
    trace = account.trace
    for row in trace.misuses:
        scope = trace.scopes.get(row.scope)
        name = row.name or (scope.name if scope is not None else "")
        yield _WORDS[row.kind].format(name=name or "without a name")
    if trace.header.closed:
        for scope in trace.scopes.values():
            # The agent's own is one for the whole trace, which nothing ends.
            if scope.kind is ScopeKind.TAG and scope.end_stamp is None and scope.name != LOADERS_OWN:
                yield f"scope {scope.name} was never ended"
    for scope in trace.scopes.values():
        if scope.category and scope.category not in _CATEGORIES:
            yield f"scope {scope.name} names the category {scope.category}, which there is not"
    for heap in trace.heaps.values():
        if heap.category and heap.category not in _CATEGORIES:
            yield f"heap {heap.name} names the category {heap.category}, which there is not"
    yield from _heaps(account)


def _heaps(account: Account) -> Iterator[str]:
    """In a recording that began later, frees of older memory are no mistake."""
    trace = account.trace
    attached = any(snapshot.name == "attach" for snapshot in trace.snapshots)
    own = {heap.id: heap for heap in trace.heaps.values() if heap.owner != EXECUTORCH}
    if not own:
        return
    for heap, arena in arenas(replace(trace, events=account.events)).items():
        if heap not in own:
            continue
        unknown, twice = _unpaired(arena)
        if unknown and not attached:
            yield from [f"heap {own[heap].name} took back what it never handed out"] * unknown
        yield from [f"heap {own[heap].name} handed out an address that it had not taken back"] * twice


def _unpaired(arena: Arena) -> tuple[int, int]:
    """Frees of what was not out, and allocations of what was."""
    resets = arena.stamp[arena.kind == EventKind.HEAP_RESET]
    rows = np.flatnonzero(arena.kind != EventKind.HEAP_RESET)
    order = rows[np.lexsort((arena.stamp[rows], arena.address[rows]))]
    is_alloc = arena.kind[order] == EventKind.HEAP_ALLOC
    age = np.searchsorted(resets, arena.stamp[order])
    held = np.zeros(len(order), np.bool_)
    same = (arena.address[order][1:] == arena.address[order][:-1]) & (age[1:] == age[:-1])
    held[1:] = same & is_alloc[:-1]
    return int((~is_alloc & ~held).sum()), int((is_alloc & held).sum())
