"""What was allocated in the scopes that programs name: ``etmem_begin_tag`` in C, ``etmem.scope`` and ``etmem.tag``."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np

from etmem.analysis.context import Account
from etmem.analysis.timeline import Window
from etmem.model.summary import NamedScope
from etmem.trace.tables import Scope, ScopeKind

LOADERS_OWN = "thread-local storage"
"""Of the agent, around what the loader makes on a thread's first use of a library."""
_NOT_THE_PROGRAM_S = (LOADERS_OWN, "etmem-runner")


def named_scopes(account: Account) -> tuple[NamedScope, ...]:
    """One row per path of names, by its first scope. All that happens inside counts, phases and inner scopes too."""
    paths = _paths(account)
    inside: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for scope, path in paths.items():
        for depth in range(1, len(path) + 1):
            inside[path[:depth]].append(scope)
    entered = Counter(paths[scope.id] for scope in account.table.scopes.values() if _is_named(scope))
    ordered = sorted(inside.items(), key=_first)
    return tuple(_row(account, path, scopes, entered[path]) for path, scopes in ordered)


def _first(entry: tuple[tuple[str, ...], list[int]]) -> int:
    return min(entry[1])


def _is_named(scope: Scope) -> bool:
    return scope.kind is ScopeKind.TAG and scope.name not in _NOT_THE_PROGRAM_S


def _paths(account: Account) -> dict[int, tuple[str, ...]]:
    """By id of every scope that is or lies in a named one, the names from the outside in."""
    paths: dict[int, tuple[str, ...]] = {}
    table = account.table
    for scope in sorted(table.scopes.values(), key=lambda scope: scope.begin_stamp):
        path = paths.get(scope.parent, ())
        if _is_named(scope):
            path = (*path, scope.name)
        if path and not table.profiler[scope.id]:
            paths[scope.id] = path
    return paths


def _row(account: Account, path: tuple[str, ...], scopes: list[int], entered: int) -> NamedScope:
    rows = np.isin(account.who.scope, scopes) & account.fresh
    ledger, last = account.ledger, account.last_stamp
    sizes = ledger.both
    return NamedScope(
        name="/".join(path),
        entered=entered,
        allocated_bytes=int(sizes[rows].sum()),
        allocations=int(account.blocks.count[rows & (sizes > 0)].sum()),
        peak_bytes=ledger.timeline(rows, Window(0, last)).peak(0, last)[1],
        live_end_bytes=int(sizes[rows & ledger.live(last)].sum()),
    )
