"""Phases and arenas that differ."""

from __future__ import annotations

from collections import Counter

from etmem.analysis.diff_model import ArenaChange, PhaseChange
from etmem.model.summary import Arena, Moment, Phase, Summary
from etmem.model.words import PhaseKind

_Key = tuple[int, PhaseKind, str | None, int | None, int]


def phase_changes(a: Summary, b: Summary, *, allocations: bool) -> tuple[PhaseChange, ...]:
    """Phases whose peak, end or (with ``allocations``) number of allocations differ, in time order.

    Repeats that only one run has are left out: a run with more inferences is not another model.
    """
    old, new = _by_key(a), _by_key(b)
    repeats_differ = a.target.iterations != b.target.iterations
    found = []
    for key in dict.fromkeys((*old, *new)):
        x, y = old.get(key), new.get(key)
        if (x is None or y is None) and repeats_differ and key[1] is PhaseKind.INFERENCE:
            continue
        change = _change(key, x, y)
        changed = change.a_peak_bytes != change.b_peak_bytes or change.a_live_end_bytes != change.b_live_end_bytes
        if changed or (allocations and change.a_allocations != change.b_allocations):
            found.append(change)
    return tuple(found)


def _by_key(summary: Summary) -> dict[_Key, Phase]:
    turns: Counter[tuple[object, ...]] = Counter()
    first = min((phase.program for phase in summary.phases), default=0)
    found = {}
    for phase in summary.phases:
        alike = (phase.program - first, phase.kind, phase.method, phase.iteration)
        found[(*alike, turns[alike])] = phase
        turns[alike] += 1
    return found


def _change(key: _Key, a: Phase | None, b: Phase | None) -> PhaseChange:
    known = a or b
    if known is None:
        raise AssertionError("a key comes from one of the two")
    _, kind, method, iteration, turn = key
    peaks = [_total(phase.peak) if phase else None for phase in (a, b)]
    return PhaseChange(
        kind=kind,
        program=known.program,
        method=method,
        iteration=iteration,
        turn=turn,
        a_peak_bytes=peaks[0],
        b_peak_bytes=peaks[1],
        a_live_end_bytes=_total(a.live_end) if a else None,
        b_live_end_bytes=_total(b.live_end) if b else None,
        a_allocations=a.allocations if a else None,
        b_allocations=b.allocations if b else None,
        delta_bytes=(peaks[1] or 0) - (peaks[0] or 0),
    )


def _total(moment: Moment) -> int:
    return moment.private_bytes + moment.file_bytes


def arena_changes(a: Summary, b: Summary) -> tuple[ArenaChange, ...]:
    old, new = _arenas(a), _arenas(b)
    found = []
    for name, program, method in dict.fromkeys((*old, *new)):
        x, y = old.get((name, program, method)), new.get((name, program, method))
        if x != y:
            found.append(ArenaChange(name, program, method, x, y, (y or 0) - (x or 0)))
    return tuple(sorted(found, key=lambda change: (-abs(change.delta_bytes), change.name)))


def _arenas(summary: Summary) -> dict[tuple[str, int, str | None], int]:
    sizes: Counter[tuple[str, int, str | None]] = Counter()
    first = min((arena.program for arena in summary.arenas if arena.program), default=0)
    for arena in summary.arenas:
        sizes[_place(arena, first)] += arena.bytes
    return dict(sizes)


def _place(arena: Arena, first: int) -> tuple[str, int, str | None]:
    return arena.name, arena.program - first if arena.program else 0, arena.method
