"""Named time series that the program recorded, each in a few figures."""

from __future__ import annotations

from collections import defaultdict

from etmem.analysis.context import Account, Span
from etmem.model.summary import Counter
from etmem.model.words import PhaseKind, Unit
from etmem.trace.tables import CounterUnit, CounterValue

SOURCE_NOTE = "source."
"""Of the note that says what a source's figures are; its series are called ``NAME.READING``."""
_WORDS = {CounterUnit.NUMBER: Unit.NUMBER, CounterUnit.BYTES: Unit.BYTES}


def counters(account: Account) -> tuple[Counter, ...]:
    """By the first value of each name. By time: what a launcher sampled has no stamps of the process."""
    series: dict[str, list[CounterValue]] = defaultdict(list)
    for value in sorted(account.trace.counters, key=lambda value: value.time_ns):
        series[value.name].append(value)
    return tuple(_row(account, name, values) for name, values in series.items())


def _row(account: Account, name: str, values: list[CounterValue]) -> Counter:
    return Counter(
        name=name,
        unit=_WORDS[values[0].unit],
        samples=len(values),
        first=values[0].value,
        last=values[-1].value,
        minimum=min(value.value for value in values),
        maximum=max(value.value for value in values),
        load_maximum=_most(values, account.spans_of(PhaseKind.PROGRAM_LOAD, PhaseKind.METHOD_LOAD)),
        inference_maximum=_most(values, account.spans_of(PhaseKind.INFERENCE)),
        source=account.trace.note(f"{SOURCE_NOTE}{name.partition('.')[0]}") or "",
    )


def _most(values: list[CounterValue], spans: tuple[Span, ...]) -> int | None:
    """A value holds until the next one: what held when a phase began counts for it too."""
    found = []
    for span in spans:
        begin, end = span.scope.begin_ns, span.scope.end_ns
        before = [value for value in values if value.time_ns < begin]
        inside = [value for value in values if begin <= value.time_ns and (end is None or value.time_ns <= end)]
        found += [value.value for value in (*before[-1:], *inside)]
    return max(found, default=None)
