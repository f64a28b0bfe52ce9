"""A timeline from a summary alone: of each phase its begin, its peak and its end."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from etmem.model.summary import Moment, OwnerBytes, Phase, Summary
from etmem.model.words import PROFILER, is_counted
from etmem.report.data import VERSION, KeyRow, Mark, ReportData, RssRow, SpanRow, lean
from etmem.report.samples import Samples, Series


@dataclass(frozen=True)
class _Point:
    time_ns: int
    moment: Moment


def moment_data(summary: Summary, name: str) -> ReportData:
    """What a trace would give, at the moments that a summary knows; stamps are their places in time."""
    places = [_places(phase) for phase in summary.phases]
    order = sorted(
        ((point.time_ns, phase, at) for phase, points in enumerate(places) for at, point in enumerate(points))
    )
    stamp = {(phase, at): number for number, (_, phase, at) in enumerate(order, 1)}
    points = [places[phase][at] for _, phase, at in order]
    keys, series = _series([point.moment for point in points])
    return ReportData(
        version=VERSION,
        title=name,
        trace=name,
        summary=lean(summary),
        keys=keys,
        samples=Samples(tuple(range(1, len(points) + 1)), tuple(point.time_ns for point in points), series),
        spans=tuple(SpanRow(phase, stamp[phase, 0], stamp[phase, 2]) for phase in range(len(places))),
        marks=tuple(_marks(summary, stamp)),
        rss=tuple(sorted(_rss(summary, stamp), key=lambda row: row.stamp)),
    )


def _places(phase: Phase) -> tuple[_Point, _Point, _Point]:
    peak_ns = min(max(phase.peak.time_ns, phase.start_ns), phase.end_ns)
    return _Point(phase.start_ns, phase.live_start), _Point(peak_ns, phase.peak), _Point(phase.end_ns, phase.live_end)


def _series(moments: list[Moment]) -> tuple[tuple[KeyRow, ...], tuple[Series, ...]]:
    keys: dict[KeyRow, int] = {}
    values: dict[tuple[int, bool], list[int]] = defaultdict(lambda: [0] * len(moments))
    for at, moment in enumerate(moments):
        for owner in moment.owners:
            for key, private, file in _rows(owner):
                number = keys.setdefault(key, len(keys))
                values[number, False][at] += private
                values[number, True][at] += file
    found = (Series(key, file, tuple(row)) for (key, file), row in sorted(values.items()) if any(row))
    return tuple(keys), tuple(found)


def _rows(owner: OwnerBytes) -> list[tuple[KeyRow, int, int]]:
    if owner.owner == PROFILER:
        return []
    counted = is_counted(owner.owner)
    return [
        (KeyRow(owner.owner, owner.instance, part.category.value, counted), part.private_bytes, part.file_bytes)
        for part in owner.categories
    ]


def _marks(summary: Summary, stamp: dict[tuple[int, int], int]) -> list[Mark]:
    peaks = (("load", summary.peaks.load, 1), ("inference", summary.peaks.inference, 1))
    found = [Mark(name, stamp[peak.phase, at]) for name, peak, at in peaks if peak is not None]
    steady = summary.peaks.steady
    return [*found, Mark("steady", stamp[steady.phase, 2])] if steady is not None else found


def _rss(summary: Summary, stamp: dict[tuple[int, int], int]) -> list[RssRow]:
    rows = []
    for number, phase in enumerate(summary.phases):
        if phase.rss is not None:
            rows.append(RssRow(stamp[number, 0], phase.start_ns, phase.rss.start_bytes, 0))
            rows.append(RssRow(stamp[number, 2], phase.end_ns, phase.rss.end_bytes, phase.rss.peak_bytes or 0))
    return rows
