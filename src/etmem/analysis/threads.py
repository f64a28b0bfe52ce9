"""Whose work a thread does where it has no scope of its own.

ExecuTorch's pool belongs to nobody: its threads do what the thread whose inference (or method load) is
running does, down to the delegate. Other threads that a delegate started are that delegate's for life, and
so are the threads that those start; unless its description says that they serve everybody, as the pool does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from etmem.analysis.descriptions import Descriptions, described
from etmem.analysis.modules import CodeMap, code_map, executorch_libraries, is_executorch
from etmem.analysis.scopes import ScopeTable, innermost_at
from etmem.delegates.description import ThreadRule
from etmem.trace.tables import U32, U64, Scope, ScopeKind, Thread, Trace

_RUNNING = (ScopeKind.METHOD_LOAD, ScopeKind.INFERENCE)
POOL = -1


@dataclass(frozen=True)
class Attributed:
    """Equal-length columns, one row per event asked for."""

    scope: U32
    """The scope whose work the event is, 0 for the application's own."""
    phase: U32
    """The phase it falls into, 0 for none."""
    ambiguous: npt.NDArray[np.bool_]
    """Made by a pool thread while several threads ran: it cannot be said whose it is."""


@dataclass(frozen=True)
class Threads:
    table: ScopeTable
    roles: dict[int, tuple[tuple[int, int], ...]]
    """By tid, (begin stamp, role) of each thread that had it: POOL, a delegate's scope, or 0."""
    steps: tuple[tuple[U64, U32], ...]
    """For each thread that ran a phase, its innermost scope over time."""

    def attribute(self, scopes: U32, threads: U32, stamps: U64) -> Attributed:
        """``scopes`` as recorded; where one is 0, its thread decides."""
        scope = self.table.known(scopes)
        phase = self.table.phase[scope]
        ambiguous = np.zeros(len(scope), np.bool_)
        loose = np.flatnonzero(scope == 0)
        for tid in np.unique(threads[loose]):
            turns = self.roles.get(int(tid))
            if turns is None:
                continue
            rows = loose[threads[loose] == tid]
            begins = np.array([begin for begin, _ in turns], np.uint64)
            turn = np.maximum(np.searchsorted(begins, stamps[rows], "right") - 1, 0)
            role = np.array([role for _, role in turns], np.int64)[turn]
            self._attribute(rows[role != 0], role[role != 0], stamps, scope, phase, ambiguous)
        return Attributed(scope, phase, ambiguous)

    def _attribute(
        self,
        rows: npt.NDArray[np.intp],
        role: npt.NDArray[np.int64],
        stamps: U64,
        scope: U32,
        phase: U32,
        ambiguous: npt.NDArray[np.bool_],
    ) -> None:
        running, running_phase, several = self._running(stamps[rows])
        pool = role == POOL
        scope[rows] = np.where(pool, np.where(several, 0, running), role)
        phase[rows] = running_phase
        ambiguous[rows] = pool & several

    def _running(self, stamps: U64) -> tuple[U32, U32, npt.NDArray[np.bool_]]:
        """At each stamp: the innermost scope of the running thread, its phase, and whether several ran.

        Of several, the phase is the one that began last.
        """
        scope, phase = np.zeros(len(stamps), np.uint32), np.zeros(len(stamps), np.uint32)
        count = np.zeros(len(stamps), np.int64)
        for step_stamps, step_ids in self.steps:
            position = np.searchsorted(step_stamps, stamps, "right") - 1
            own = np.where(position >= 0, step_ids[np.maximum(position, 0)], 0)
            own_phase = self.table.phase[own]
            runs = self._runs(own_phase)
            count += runs
            # Phase ids grow with time, as all scope ids do.
            take = runs & (own_phase > phase)
            scope[take], phase[take] = own[take], own_phase[take]
        return scope, phase, count > 1

    def _runs(self, phase: U32) -> npt.NDArray[np.bool_]:
        ids = [scope.id for scope in self.table.phases() if scope.kind in _RUNNING]
        flags = np.zeros(len(self.table.phase), np.bool_)
        flags[ids] = True
        return flags[phase]


def resolve(trace: Trace, table: ScopeTable, descriptions: Descriptions) -> Threads:
    pooled = {name for name, found in described(table.instances, descriptions) if found.threads is ThreadRule.POOL}
    pool = _PoolTest(code_map(trace), trace)
    roles: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for thread in sorted(trace.threads, key=lambda thread: thread.begin_stamp):
        roles[thread.tid].append((thread.begin_stamp, _role(thread, table, roles, pool, pooled)))
    wanted = {tid: tuple(turns) for tid, turns in roles.items() if any(role for _, role in turns)}
    return Threads(table, wanted, _steps(table))


def _role(
    thread: Thread,
    table: ScopeTable,
    roles: dict[int, list[tuple[int, int]]],
    pool: _PoolTest,
    pooled: set[str],
) -> int:
    if pool.is_pool(thread):
        return POOL
    scope = thread.scope if thread.scope < len(table.delegate) else 0
    if scope:
        holder = int(table.delegate[scope])
        return POOL if holder and table.scopes[holder].name in pooled else holder
    parent = roles.get(thread.parent)
    # What a pool thread starts outside of any delegate is not the pool's.
    return max(parent[-1][1], 0) if parent else 0


def _steps(table: ScopeTable) -> tuple[tuple[U64, U32], ...]:
    runners = {scope.thread for scope in table.scopes.values() if scope.kind in _RUNNING}
    by_thread: dict[int, list[Scope]] = defaultdict(list)
    for scope in _of_threads(table.scopes.values(), runners):
        by_thread[scope.thread].append(scope)
    return tuple(innermost_at(by_thread[tid]) for tid in sorted(by_thread))


def _of_threads(scopes: Iterable[Scope], tids: set[int]) -> Iterable[Scope]:
    return (scope for scope in scopes if scope.thread in tids)


class _PoolTest:
    """Whether a thread starts in a module that is ExecuTorch's."""

    def __init__(self, code: CodeMap, trace: Trace) -> None:
        self._code = code
        self._named = executorch_libraries(trace)

    def is_pool(self, thread: Thread) -> bool:
        piece = self._code.at(thread.start_routine) if thread.start_routine else None
        return piece is not None and is_executorch(piece.path, self._named)
