"""The table of phases, with the iterations that say nothing new folded into one line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from etmem.model.summary import Phase, Summary
from etmem.model.words import PhaseKind
from etmem.report.names import phase_name
from etmem.report.table import grid
from etmem.report.units import Scale, shorten

HEADER = ("phase", "peak", "file", "end", "process", "allocs", "RSS 0", "end", "high")
COUNTED = 6
"""Columns before RSS's: all there is when nothing was measured."""
KEPT_ITERATIONS = 2
"""Warm-up and the first steady one; later ones are shown when they set a new peak."""


@dataclass(frozen=True)
class PhaseRow:
    """One phase, or a run of later iterations of one method that set no new peak."""

    phases: tuple[Phase, ...]

    @property
    def highest(self) -> Phase:
        return max(self.phases, key=lambda phase: phase.peak.private_bytes + phase.peak.file_bytes)


def phase_lines(summary: Summary, scale: Scale, width: int) -> list[str]:
    """Each phase's exact peak (private and file), what was live at its ends, and RSS beside them."""
    if not summary.phases:
        return []
    rows: list[Sequence[str]] = [_cells(row, scale, len(summary.programs)) for row in fold(summary.phases)]
    header: Sequence[str] = HEADER
    if not any(phase.rss for phase in summary.phases):
        rows = [row[:COUNTED] for row in rows]
        header = HEADER[:COUNTED]
    title = f"PHASES  {scale.unit}: peak; live at the end; the process's private peak; RSS"
    return [shorten(title, width), *grid(header, rows, 1, width)]


def fold(phases: tuple[Phase, ...]) -> Iterator[PhaseRow]:
    """Rows in time order; consecutive inferences beyond the second fold unless one sets a new peak."""
    folded: list[Phase] = []
    highest: dict[tuple[int, str | None], int] = {}
    for phase in phases:
        key = (phase.program, phase.method)
        size = phase.peak.private_bytes + phase.peak.file_bytes
        if _foldable(phase) and not phase.failed and size <= highest.get(key, -1):
            if folded and (folded[-1].program, folded[-1].method) != key:
                yield PhaseRow(tuple(folded))
                folded = []
            folded.append(phase)
            continue
        if phase.kind is PhaseKind.INFERENCE:
            highest[key] = max(highest.get(key, -1), size)
        if folded:
            yield PhaseRow(tuple(folded))
            folded = []
        yield PhaseRow((phase,))
    if folded:
        yield PhaseRow(tuple(folded))


def _foldable(phase: Phase) -> bool:
    return phase.kind is PhaseKind.INFERENCE and (phase.iteration or 0) >= KEPT_ITERATIONS


def _cells(row: PhaseRow, scale: Scale, programs: int) -> tuple[str, ...]:
    phase = row.highest
    peak, end = phase.peak, row.phases[-1].live_end
    return (
        _name(row, programs),
        scale.number(peak.private_bytes + peak.file_bytes),
        scale.number(peak.file_bytes),
        scale.number(end.private_bytes + end.file_bytes),
        scale.number(max(p.process_private_bytes for p in row.phases)),
        f"{sum(p.allocations for p in row.phases):,}",
        *_rss(row, scale),
    )


def _name(row: PhaseRow, programs: int) -> str:
    first, last = row.phases[0], row.phases[-1]
    name = phase_name(first, programs=programs)
    if len(row.phases) > 1:
        return f"{name}..{last.iteration}"
    return f"{name} FAILED" if first.failed else name


def _rss(row: PhaseRow, scale: Scale) -> tuple[str, str, str]:
    known = [phase.rss for phase in row.phases if phase.rss is not None]
    if not known:
        return "", "", ""
    peaks = [rss.peak_bytes for rss in known if rss.peak_bytes is not None]
    high = scale.number(max(peaks)) if peaks else "?"
    return scale.number(known[0].start_bytes), scale.number(known[-1].end_bytes), high
