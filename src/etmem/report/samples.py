"""Live bytes of every owner and category over time, at few enough moments to draw and without losing a peak."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from etmem.analysis.context import Account, Context
from etmem.analysis.lookup import I64
from etmem.analysis.timeline import Timeline
from etmem.model.words import PROFILER
from etmem.report.scope_names import ScopeNames
from etmem.report.stacks import Group, Groups, delegate_operator
from etmem.trace.tables import U64

MOST = 2000
"""Moments: about what a wide screen has in pixels."""
OPERATORS = 12
"""Operators of one owner that are told apart: more layers than that nobody reads."""
SMALLER = "smaller operators"
_LINES = 400
_PER_BIN = 4
"""The first, lowest, highest and last value of each bin."""


@dataclass(frozen=True)
class Series:
    """Live bytes under one key, private or file-backed, one value per moment."""

    key: int
    """Index in ``Account.keys``."""
    file: bool
    values: tuple[int, ...]


@dataclass(frozen=True)
class OperatorSeries:
    """Live bytes that one operator of an owner asked for, or what no operator did, by its category."""

    owner: str
    operator: str
    """Empty where there is none."""
    category: str
    """Empty where there is an operator: its blocks may be of several."""
    file: bool
    values: tuple[int, ...]


@dataclass(frozen=True)
class Samples:
    """Every value is exact at its stamp and holds until the next one that is shown."""

    stamps: tuple[int, ...] = ()
    times_ns: tuple[int, ...] = ()
    series: tuple[Series, ...] = ()
    operators: tuple[OperatorSeries, ...] = ()
    """The counted owners' bytes once more: those of ``series``, cut another way."""


def samples(context: Context, counted: Groups, most: int = MOST) -> Samples:
    """The profiler's own memory is left out; what is never live is, too. ``counted``: all blocks that peaks count."""
    if not context.spans:
        return Samples()
    stamps = moments(context, most)
    found = []
    for is_file, sizes in ((False, context.private_bytes), (True, context.file_bytes)):
        group = np.where(sizes > 0, context.ledger.code, np.int32(-1))
        live = context.ledger.sums_at(stamps, group, len(context.keys))
        shown = [key for key in np.flatnonzero(live.any(axis=1)).tolist() if context.keys[key].owner != PROFILER]
        found += [Series(key, is_file, tuple(live[key].tolist())) for key in shown]
    operators = operator_series(context, counted, stamps)
    return Samples(tuple(stamps.tolist()), times(context, stamps), tuple(found), operators)


def operator_series(
    context: Context, counted: Groups, stamps: U64, most: int = OPERATORS
) -> tuple[OperatorSeries, ...]:
    """At most ``most`` of each owner, by their peaks; the smaller ones are one series together."""
    if not counted.groups:
        return ()
    names = ScopeNames(context)
    asked = np.bincount(counted.member, context.ledger.both[counted.rows], len(counted.groups))
    lines: dict[_Line, int] = {}
    of_group = np.empty(len(counted.groups), np.int32)
    of_row = np.full(len(context.blocks), -1, np.int32)
    for index in np.argsort(-asked, kind="stable").tolist():
        line = _line(context, names, counted.groups[index])
        # Each is a row of as many numbers as there are moments: a thousand kernels must not be a thousand rows.
        line = line if line in lines or len(lines) < _LINES else replace(line, operator=SMALLER, category="")
        of_group[index] = lines.setdefault(line, len(lines))
    of_row[counted.rows] = of_group[counted.member]
    live = context.ledger.sums_at(stamps, of_row, len(lines))
    kept: dict[_Line, I64] = {}
    taken: Counter[str] = Counter()
    for index in np.argsort(-live.max(axis=1), kind="stable").tolist():
        line = list(lines)[index]
        if live[index].any():
            taken[line.owner] += line.operator not in ("", SMALLER)
            line = replace(line, operator=SMALLER) if line.operator and taken[line.owner] > most else line
            kept[line] = kept.get(line, 0) + live[index]
    return tuple(
        OperatorSeries(line.owner, line.operator, line.category, line.file, tuple(kept[line].tolist()))
        for line in sorted(kept)
    )


@dataclass(frozen=True, order=True)
class _Line:
    owner: str
    operator: str
    category: str
    file: bool


def _line(context: Context, names: ScopeNames, group: Group) -> _Line:
    key = context.keys[group.key]
    operator = delegate_operator(context, group) or names.kernel(group.scope) or ""
    return _Line(key.owner, operator, "" if operator else key.category.value, group.file)


def times(account: Account, stamps: U64) -> tuple[int, ...]:
    """Nanoseconds since the trace's start."""
    return account.ledger.clock.several_ns(stamps)


def moments(context: Context, most: int = MOST) -> U64:
    """Sorted stamps: at most ``most`` of the total's, and each owner's own peaks besides."""
    total, window = context.ledger.total, context.ledger.window
    edges = sorted({stamp for span in context.spans for stamp in (span.begin, span.end)})
    if len(edges) * _PER_BIN * 2 > most:
        # Too many phases to give each a bin: those of equal length take their place.
        edges = [edges[0], edges[-1]]
    chosen = set(edges) | set(context.peak_stamps.values()) | _owner_peaks(context)
    chosen |= {snapshot.stamp for snapshot in context.trace.snapshots}
    chosen |= {int(stamp) for stamp in total.stamps[reduced(total, edges, most - len(edges))].tolist()}
    inside = sorted(stamp for stamp in chosen if window.since <= stamp <= window.until)
    return np.array(inside, np.uint64)


def reduced(line: Timeline, edges: Iterable[int], most: int) -> list[int]:
    """Positions in a timeline: of every bin its first, lowest, highest and last. Bins never cross an edge."""
    marks = np.searchsorted(line.stamps, np.array(list(edges), np.uint64), "left")
    bounds = np.unique(np.concatenate([[0], marks, [len(line.stamps)]]))
    counts = np.diff(bounds)
    bins = max(most // _PER_BIN - len(counts), 0)
    chosen: set[int] = set()
    for begin, count in zip(bounds[:-1].tolist(), counts.tolist(), strict=True):
        share = 1 + int(bins * count / max(len(line.stamps), 1))
        cuts = np.unique(np.linspace(begin, begin + count, min(share, count) + 1).astype(np.int64)).tolist()
        for start, end in pairwise(cuts):
            values = line.values[start:end]
            chosen |= {start, start + int(values.argmin()), start + int(values.argmax()), end - 1}
    return sorted(chosen)


def _owner_peaks(context: Context) -> set[int]:
    """Where each counted owner is largest, over all and in each group of phases."""
    found = set()
    window = context.ledger.window
    for owner in {key.owner for key in context.keys if key.counted}:
        line = context.ledger.owner_timeline(owner)
        found.add(line.peak(window.since, window.until)[0])
        for kind in {span.kind for span in context.spans}:
            tops = [line.peak(span.begin, span.end) for span in context.spans if span.kind is kind]
            found.add(max(tops, key=lambda top: top[1])[0])
    return found
