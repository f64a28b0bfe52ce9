"""Named time series that the program recorded, each in a few figures."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence

from etmem.analysis.context import Account, Span
from etmem.model.summary import Counter
from etmem.model.words import PhaseKind, Unit
from etmem.trace.tables import CounterValue

SOURCE_NOTE = "source."
"""Of the note that says what a source's figures are; its series are called ``NAME.READING``."""


def counters(account: Account) -> tuple[Counter, ...]:
    return tuple(_row(account, name, values) for name, values in series(account).items())


def series(account: Account) -> Mapping[str, Sequence[CounterValue]]:
    """By the first value of each name. By time: what a launcher sampled has no stamps of the process."""
    found: dict[str, list[CounterValue]] = defaultdict(list)
    for value in sorted(account.trace.counters, key=lambda value: value.time_ns):
        found[value.name].append(value)
    return found


def unit(values: Sequence[CounterValue]) -> Unit:
    """The first one's is the series'."""
    return Unit[values[0].unit.name]


def _row(account: Account, name: str, values: Sequence[CounterValue]) -> Counter:
    return Counter(
        name=name,
        unit=unit(values),
        samples=len(values),
        first=values[0].value,
        last=values[-1].value,
        minimum=min(value.value for value in values),
        maximum=max(value.value for value in values),
        load_maximum=_most(values, account.spans_of(PhaseKind.PROGRAM_LOAD, PhaseKind.METHOD_LOAD)),
        inference_maximum=_most(values, account.spans_of(PhaseKind.INFERENCE)),
        source=account.trace.note(f"{SOURCE_NOTE}{name.partition('.')[0]}") or "",
    )


def _most(values: Sequence[CounterValue], spans: tuple[Span, ...]) -> int | None:
    """A value holds until the next one: what held when a phase began counts for it too."""
    times = [value.time_ns for value in values]
    found: list[CounterValue] = []
    for span in spans:
        first = bisect_left(times, span.scope.begin_ns)
        after = len(times) if span.scope.end_ns is None else bisect_right(times, span.scope.end_ns)
        found += values[max(first - 1, 0) : after]
    return max((value.value for value in found), default=None)
