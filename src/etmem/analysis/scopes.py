"""What every scope id stands for: its phase, its delegate instance, whether it is the profiler's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from etmem.model.words import PhaseKind
from etmem.trace.tables import U32, U64, DelegateStage, Scope, ScopeKind

PHASE_KINDS = {
    ScopeKind.PROGRAM_LOAD: PhaseKind.PROGRAM_LOAD,
    ScopeKind.METHOD_LOAD: PhaseKind.METHOD_LOAD,
    ScopeKind.INFERENCE: PhaseKind.INFERENCE,
    ScopeKind.UNLOAD: PhaseKind.UNLOAD,
}


@dataclass(frozen=True, order=True)
class Instance:
    """One delegate of one method of one loaded program; ``index`` is its place in the method's table."""

    program: int
    method: str
    backend: str
    index: int
    label: str
    """``forward/XnnpackBackend[2]``; with the program's id in front for all programs but the first."""


@dataclass(frozen=True)
class ScopeTable:
    """Columns by scope id; id 0, and ids that the trace does not explain, are in no phase and no delegate."""

    scopes: Mapping[int, Scope]
    phase: U32
    """Id of the innermost phase, 0 for none."""
    delegate: U32
    """Id of the innermost delegate scope, 0 for none."""
    instance: npt.NDArray[np.int32]
    """Index in ``instances``, -1 for none."""
    profiler: npt.NDArray[np.bool_]
    instances: tuple[Instance, ...]

    def known(self, ids: U32) -> U32:
        """The ids, with those that the trace does not explain as 0."""
        return np.where(ids < len(self.phase), ids, 0).astype(np.uint32)

    def phases(self) -> tuple[Scope, ...]:
        """All phases by begin."""
        found = (scope for scope in self.scopes.values() if scope.kind.is_phase)
        return tuple(sorted(found, key=lambda scope: scope.begin_stamp))

    def delegate_scopes(self, instance: int, stage: DelegateStage) -> tuple[Scope, ...]:
        """The inits, executes or destroys of one instance, by begin."""
        ids = np.flatnonzero((self.instance == instance) & (self.delegate == np.arange(len(self.delegate))))
        found = (self.scopes[int(scope)] for scope in ids)
        return tuple(sorted((s for s in found if s.b == stage), key=lambda scope: scope.begin_stamp))


def end_of(scope: Scope) -> int:
    """The stamp at which a scope ended; of one that never did, a stamp after all others."""
    return scope.end_stamp if scope.end_stamp is not None else 2**40 - 1


def resolve(scopes: Mapping[int, Scope]) -> ScopeTable:
    """Walks every scope's parents once."""
    size = max(scopes, default=0) + 1
    phase, delegate = np.zeros(size, np.uint32), np.zeros(size, np.uint32)
    instance, profiler = np.full(size, -1, np.int32), np.zeros(size, np.bool_)
    phase_programs = [scope.a for scope in scopes.values() if scope.kind.is_phase]
    first_program = min(phase_programs, default=0)
    instances: dict[Instance, int] = {}
    # A parent begins before its children, so its row is ready when theirs are made.
    for scope in sorted(scopes.values(), key=lambda scope: scope.begin_stamp):
        parent = scope.parent if scope.parent in scopes else 0
        own = scope.id
        phase[own] = own if scope.kind.is_phase else phase[parent]
        profiler[own] = profiler[parent] or scope.kind is ScopeKind.PROFILER
        if scope.kind is ScopeKind.DELEGATE:
            delegate[own] = own
            if phase[own] and scope.a >= 0:  # -1: made before recording began
                found = _instance(scope, scopes[int(phase[own])], first_program)
                instance[own] = instances.setdefault(found, len(instances))
        elif not scope.kind.is_phase:
            delegate[own], instance[own] = delegate[parent], instance[parent]
    return ScopeTable(scopes, phase, delegate, instance, profiler, tuple(instances))


def innermost_at(scopes: list[Scope]) -> tuple[U64, U32]:
    """One thread's innermost scope as steps: from ``stamps[i]`` on it is ``ids[i]``."""
    ends = [(scope.end_stamp, 0, scope.parent) for scope in reversed(scopes) if scope.end_stamp is not None]
    begins = [(scope.begin_stamp, 1, scope.id) for scope in scopes]
    # Of one stamp, the inner one ends first and the outer one begins first: those told by call stack share stamps.
    steps = sorted(ends + begins, key=lambda step: step[:2])
    return np.array([s for s, _, _ in steps], np.uint64), np.array([i for _, _, i in steps], np.uint32)


def _instance(scope: Scope, phase: Scope, first_program: int) -> Instance:
    prefix = "" if phase.a == first_program else f"{phase.a}:"
    label = f"{prefix}{phase.name}/{scope.name}[{scope.a}]"
    return Instance(phase.a, phase.name, scope.name, scope.a, label)
