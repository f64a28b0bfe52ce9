"""What differs at the peaks and at rest: totals, owners' categories, delegate instances."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from etmem.analysis.diff_model import Change, Figures, InstanceChange, PeakChange
from etmem.model.summary import Moment, Summary
from etmem.model.words import Category, is_counted

INSTANTS = ("inference", "load", "steady")
"""In the order in which they are shown."""

K = TypeVar("K")
_NOTHING = Figures()


def moment(summary: Summary, at: str) -> Moment | None:
    peak = {"load": summary.peaks.load, "inference": summary.peaks.inference, "steady": summary.peaks.steady}[at]
    return peak.moment if peak is not None else None


def peak_changes(a: Summary, b: Summary, comparable: Mapping[str, bool]) -> tuple[PeakChange, ...]:
    found = []
    for at in INSTANTS:
        old, new = _total(moment(a, at)), _total(moment(b, at))
        if old is None and new is None:
            continue
        delta = new.total - old.total if old is not None and new is not None else 0
        found.append(PeakChange(at, old, new, delta, comparable[at] and old is not None and new is not None))
    return tuple(found)


def category_changes(a: Summary, b: Summary) -> tuple[Change, ...]:
    """By instant, the largest change first. An instant that only one run has is no change."""
    found: list[Change] = []
    for at in INSTANTS:
        old, new = moment(a, at), moment(b, at)
        if old is not None and new is not None:
            found += _changes_at(at, categories(old), categories(new))
    return tuple(found)


def _changes_at(
    at: str, old: Mapping[tuple[str, Category], Figures], new: Mapping[tuple[str, Category], Figures]
) -> list[Change]:
    rows = list(different(old, new))
    whole = sum(abs(b.total - a.total) for _, a, b in rows) or 1
    changes = [
        Change(at, owner, category, a, b, b.total - a.total, abs(b.total - a.total) / whole)
        for (owner, category), a, b in rows
    ]
    return sorted(changes, key=lambda change: (-abs(change.delta_bytes), change.owner, change.category))


def instance_changes(a: Summary, b: Summary) -> tuple[InstanceChange, ...]:
    found: list[InstanceChange] = []
    for at in INSTANTS:
        old, new = moment(a, at), moment(b, at)
        if old is not None and new is not None:
            rows = [
                InstanceChange(at, name, x, y, y.total - x.total)
                for name, x, y in different(_instances(old), _instances(new))
            ]
            found += sorted(rows, key=lambda row: (-abs(row.delta_bytes), row.instance))
    return tuple(found)


def categories(at: Moment) -> dict[tuple[str, Category], Figures]:
    """Counted owners only, all instances of one together."""
    rows = (
        ((one.owner, part.category), Figures(part.private_bytes, part.file_bytes, part.blocks))
        for one in at.owners
        if is_counted(one.owner)
        for part in one.categories
    )
    return add_up(rows)


def _instances(at: Moment) -> dict[str, Figures]:
    rows = (
        (one.instance, Figures(one.private_bytes, one.file_bytes, sum(part.blocks for part in one.categories)))
        for one in at.owners
        if is_counted(one.owner) and one.instance is not None
    )
    return add_up(rows)


def add_up(rows: Iterable[tuple[K, Figures]]) -> dict[K, Figures]:
    sums: dict[K, Figures] = {}
    for key, one in rows:
        old = sums.get(key, _NOTHING)
        sums[key] = Figures(
            old.private_bytes + one.private_bytes, old.file_bytes + one.file_bytes, old.blocks + one.blocks
        )
    return sums


def different(old: Mapping[K, Figures], new: Mapping[K, Figures]) -> Iterator[tuple[K, Figures, Figures]]:
    """What is not the same in both, in the order of the first and then of the second."""
    for key in dict.fromkeys((*old, *new)):
        a, b = old.get(key, _NOTHING), new.get(key, _NOTHING)
        if a != b:
            yield key, a, b


def _total(at: Moment | None) -> Figures | None:
    return Figures(at.private_bytes, at.file_bytes) if at is not None else None
