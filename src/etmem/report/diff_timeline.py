"""The counted bytes of one run over its phases, as SVG: one slot per phase, owners stacked, one scale for two runs."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

from etmem.model.summary import Moment, Phase, Summary
from etmem.model.words import PhaseKind, is_counted
from etmem.report.names import owner_name, phase_name
from etmem.report.units import clean, file_size

WIDTH, HEIGHT = 880, 180
_LEFT, _BOTTOM, _TOP = 70, 24, 8
_MOST = 16
"""Phases that are drawn: loads, the first inferences and the last of each method, unloads."""
COLOURS = ("#4a7ebb", "#d9822b", "#5a9e6f", "#a05a9e", "#b5a03c", "#7a7a7a")


@dataclass(frozen=True)
class _Point:
    x: float
    bytes: tuple[int, ...]
    """By owner, in the order of the drawing."""


def owners(summaries: Sequence[Summary]) -> tuple[str, ...]:
    """All counted owners of the runs, ExecuTorch first: each has one colour on the whole page."""
    names = dict.fromkeys(
        one.owner for run in summaries for phase in run.phases for one in phase.peak.owners if is_counted(one.owner)
    )
    return tuple(sorted(names, key=lambda name: (name != "executorch", name)))


def highest(summaries: Sequence[Summary]) -> int:
    return max((p.peak.private_bytes + p.peak.file_bytes for run in summaries for p in run.phases), default=0)


def timeline(summary: Summary, names: Sequence[str], top: int, title: str) -> str:
    """Straight lines between what is known of each phase: its begin, its peak and its end."""
    phases = _shown(summary.phases)
    if not phases or top <= 0:
        return f"<p>{html.escape(clean(title))}: nothing was seen.</p>"
    slot = (WIDTH - _LEFT) / len(phases)
    points = [point for at, phase in enumerate(phases) for point in _points(phase, names, _LEFT + at * slot, slot)]
    label = html.escape(f"{clean(title, 60)}: counted bytes by phase", quote=True)
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT + _BOTTOM}" role="img" aria-label="{label}">']
    parts += _areas(points, names, top)
    parts += [_label(phase, at, slot, len(summary.programs)) for at, phase in enumerate(phases)]
    parts += _scale(top)
    return "".join([*parts, "</svg>"])


def _shown(phases: Sequence[Phase]) -> list[Phase]:
    if len(phases) <= _MOST:
        return list(phases)
    last = {(phase.program, phase.method): phase for phase in phases if phase.kind is PhaseKind.INFERENCE}
    keep = [
        phase
        for phase in phases
        if phase.kind is not PhaseKind.INFERENCE
        or (phase.iteration or 0) < 2
        or phase is last[phase.program, phase.method]
    ]
    return keep[:_MOST]


def _points(phase: Phase, names: Sequence[str], left: float, slot: float) -> list[_Point]:
    length = max(1, phase.end_ns - phase.start_ns)
    peak = min(1.0, max(0.0, (phase.peak.time_ns - phase.start_ns) / length))
    inner = slot - 4
    places = ((left, phase.live_start), (left + peak * inner, phase.peak), (left + inner, phase.live_end))
    return [_Point(x, _by_owner(moment, names)) for x, moment in places]


def _by_owner(moment: Moment, names: Sequence[str]) -> tuple[int, ...]:
    sums = dict.fromkeys(names, 0)
    for one in moment.owners:
        if one.owner in sums:
            sums[one.owner] += one.private_bytes + one.file_bytes
    return tuple(sums.values())


def _areas(points: Sequence[_Point], names: Sequence[str], top: int) -> list[str]:
    floor = [0] * len(points)
    found = []
    for at, name in enumerate(names):
        upper = [low + point.bytes[at] for low, point in zip(floor, points, strict=True)]
        edge = [f"{p.x:.1f},{_y(high, top):.1f}" for p, high in zip(points, upper, strict=True)]
        back = [f"{p.x:.1f},{_y(low, top):.1f}" for p, low in zip(points, floor, strict=True)]
        colour = COLOURS[at % len(COLOURS)]
        text = html.escape(owner_name(name))
        found.append(
            f'<polygon fill="{colour}" points="{" ".join([*edge, *reversed(back)])}"><title>{text}</title></polygon>'
        )
        floor = upper
    return found


def _y(count: int, top: int) -> float:
    return HEIGHT - (HEIGHT - _TOP) * count / top


def _label(phase: Phase, at: int, slot: float, programs: int) -> str:
    name = phase_name(phase, programs=programs)
    room = max(4, int(slot / 7))
    text, full = html.escape(clean(name, room)), html.escape(name)
    total = file_size(phase.peak.private_bytes + phase.peak.file_bytes)
    x = _LEFT + at * slot
    return (
        f'<rect class="phase" x="{x:.1f}" y="{_TOP}" width="{slot - 4:.1f}" height="{HEIGHT - _TOP}">'
        f"<title>{full}: peak {total}</title></rect>"
        f'<text x="{x:.1f}" y="{HEIGHT + 15}">{text}</text>'
    )


def _scale(top: int) -> list[str]:
    return [
        f'<text class="scale" x="{_LEFT - 8}" y="{_y(count, top) + 4:.1f}">{file_size(count)}</text>'
        f'<line x1="{_LEFT}" x2="{WIDTH}" y1="{_y(count, top):.1f}" y2="{_y(count, top):.1f}"/>'
        for count in (top, top // 2)
    ]
