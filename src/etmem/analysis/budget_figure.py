"""The figure that a limit is on, taken from a summary; a LackingError where the summary does not have it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from etmem.analysis.budget_model import Limit, Measure, What
from etmem.analysis.diff_comparable import owners_known
from etmem.model.summary import Moment, OwnerBytes, Phase, Summary
from etmem.model.words import HOST, PhaseKind, Severity, is_counted


class LackingError(Exception):
    """The target does not have what a limit needs: the limit is neither kept nor passed."""


@dataclass(frozen=True)
class Figure:
    value: int
    breakdown: tuple[tuple[str, int], ...] = ()
    """(owner and category, bytes) at the instant of the value, largest first."""


def figure(summary: Summary, limit: Limit) -> Figure:
    """Raises LackingError."""
    failed = [issue.code.value for issue in summary.issues if issue.severity is Severity.ERROR]
    if failed:
        raise LackingError(f"the run's figures are wrong or missing: {', '.join(failed)}")
    if (limit.owner is not None or limit.category is not None) and not owners_known(summary):
        raise LackingError("the run's owners are not known")
    if limit.measure is Measure.RSS:
        return Figure(_rss(summary, limit))
    if limit.measure in (Measure.ALLOCATED, Measure.ALLOCATIONS):
        return Figure(_allocations(summary, limit))
    _require_owner(summary, limit)
    if limit.owner is None and limit.category is None:
        return _total(summary, limit)
    return _part(summary, limit)


def phases(summary: Summary, limit: Limit) -> list[Phase]:
    """The phases that a limit is on. Raises LackingError where there are none."""
    of_method = [phase for phase in summary.phases if limit.method in (None, phase.method)]
    if limit.method is not None and not of_method:
        raise LackingError(f"no method {limit.method!r} was loaded")
    inferences = [phase for phase in of_method if phase.kind is PhaseKind.INFERENCE]
    first, later = _first_and_later(inferences)
    found = {
        What.LOAD: [phase for phase in of_method if phase.kind.is_load],
        What.INFERENCE: inferences,
        What.FIRST_INFERENCE: first,
        What.LATER_INFERENCE: later,
        What.STEADY: inferences[-1:],
        What.OVERALL: of_method,
    }[limit.what]
    if not found:
        raise LackingError(f"the run has no {limit.what.value.replace('_', ' ')}")
    return found


def _first_and_later(inferences: Iterable[Phase]) -> tuple[list[Phase], list[Phase]]:
    seen: set[tuple[int, str | None]] = set()
    first: list[Phase] = []
    later: list[Phase] = []
    for phase in inferences:
        method = (phase.program, phase.method)
        (later if method in seen else first).append(phase)
        seen.add(method)
    return first, later


def _total(summary: Summary, limit: Limit) -> Figure:
    """The exact maximum of what is counted over the phases."""
    chosen = phases(summary, limit)
    if limit.what is What.STEADY:
        moments = [phase.live_end for phase in chosen]
    elif limit.measure is Measure.PRIVATE:
        moments = [phase.peak_private for phase in chosen]
    else:
        moments = [phase.peak for phase in chosen]
    count = _counter(limit.measure)
    best = max(moments, key=lambda moment: count(moment.private_bytes, moment.file_bytes))
    return Figure(count(best.private_bytes, best.file_bytes), _breakdown(best, limit))


def _part(summary: Summary, limit: Limit) -> Figure:
    """The largest of the part over the recorded instants: peaks, begins and ends of the phases, and for
    a whole owner its own peak."""
    moments = list(_instants(phases(summary, limit), limit))
    count = _counter(limit.measure)

    def value(owners: Iterable[OwnerBytes]) -> int:
        return sum(count(private, file) for _, private, file in _rows(owners, limit))

    best = max(moments, key=lambda moment: value(moment.owners))
    own = [value(owners) for owners in _own_peaks(summary, limit)]
    return Figure(max([value(best.owners), *own]), _breakdown(best, limit))


def _instants(chosen: Iterable[Phase], limit: Limit) -> Iterable[Moment]:
    for phase in chosen:
        if limit.what is not What.STEADY:
            yield from (phase.peak, phase.peak_private, phase.live_start)
        yield phase.live_end


def _own_peaks(summary: Summary, limit: Limit) -> list[tuple[OwnerBytes, ...]]:
    """Rows of each owner at its own peak; they are of all methods together."""
    groups = {
        What.LOAD: (summary.peaks.load,),
        What.INFERENCE: (summary.peaks.inference,),
        What.OVERALL: (summary.peaks.load, summary.peaks.inference),
    }.get(limit.what, ())
    if limit.method is not None or limit.category is not None:
        return []
    return [peak.owner_peaks for peak in groups if peak is not None]


def _rows(owners: Iterable[OwnerBytes], limit: Limit) -> Iterable[tuple[str, int, int]]:
    for one in owners:
        if not (one.owner == limit.owner if limit.owner is not None else is_counted(one.owner)):
            continue
        for part in one.categories:
            if limit.category in (None, part.category):
                yield f"{one.owner} {part.category.value}", part.private_bytes, part.file_bytes


def _breakdown(moment: Moment, limit: Limit) -> tuple[tuple[str, int], ...]:
    count = _counter(limit.measure)
    sums: dict[str, int] = {}
    for name, private, file in _rows(moment.owners, limit):
        sums[name] = sums.get(name, 0) + count(private, file)
    return tuple(sorted(((name, size) for name, size in sums.items() if size), key=lambda row: (-row[1], row[0])))


def _counter(measure: Measure) -> Callable[[int, int], int]:
    if measure is Measure.PRIVATE:
        return lambda private, _: private
    return lambda private, file: private + file


def _require_owner(summary: Summary, limit: Limit) -> None:
    """A limit on a delegate that the run did not have would always be kept."""
    owner = limit.owner or ""
    if owner in ("", HOST) or not owner.startswith("delegate:"):
        return
    mine = [one for one in summary.delegates if f"delegate:{one.backend}" == owner]
    if not [one for one in mine if limit.method in (None, one.method)]:
        known = ", ".join(sorted({one.backend for one in summary.delegates})) or "no delegate"
        raise LackingError(f"the run has no {owner}: it has {known}")


def _rss(summary: Summary, limit: Limit) -> int:
    start = next((phase.rss.start_bytes for phase in summary.phases if phase.rss is not None), None)
    if start is None:
        raise LackingError("the run has no RSS" + (": it was dry" if summary.target.dry else ""))
    highs = []
    for phase in phases(summary, limit):
        if limit.what is What.STEADY:
            highs.append(phase.rss.end_bytes if phase.rss is not None else None)
        else:
            highs.append(phase.rss.peak_bytes if phase.rss is not None else None)
    known = [high for high in highs if high is not None]
    if len(known) < len(highs):
        raise LackingError("the kernel's high water of RSS is not known")
    return max(known) - start


def _allocations(summary: Summary, limit: Limit) -> int:
    """Of load and overall the sum, of inferences the most that any single one makes."""
    chosen = phases(summary, limit)
    if limit.owner is not None:
        _require_owner(summary, limit)
        mine = (one for one in summary.delegates if f"delegate:{one.backend}" == limit.owner)
        return sum(one.execute_allocations for one in mine if limit.method in (None, one.method))
    counts = [phase.allocations if limit.measure is Measure.ALLOCATIONS else phase.allocated_bytes for phase in chosen]
    return sum(counts) if limit.what in (What.LOAD, What.OVERALL) else max(counts)
