"""The arenas as a picture: time from left to right, places in the arena from bottom to top."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from etmem.report.units import clean

if TYPE_CHECKING:
    from collections.abc import Iterator

    from etmem.planning.model import ArenaMap, MethodPlan, Placed, ProgramPlan

_WIDTH, _HEIGHT = 960, 360
_LEFT, _TOP, _GAP = 90, 46, 70
_COLOURS = {"input": "#4c78a8", "output": "#54a24b", "mutable": "#e45756", "temporary": "#bab0ac"}
_MOST_PLACES = 5000
"""More rectangles than that are no picture: the largest are drawn."""


def to_svg(plan: ProgramPlan) -> str:
    """One panel for each planned buffer of each method. Needs no script and no font of its own."""
    arenas = [(method, arena) for method in plan.methods for arena in method.arenas if arena.bytes]
    height = _TOP + len(arenas) * (_HEIGHT + _GAP)
    body = [line for index, (method, arena) in enumerate(arenas)
            for line in _panel(method, arena, _TOP + index * (_HEIGHT + _GAP))]  # fmt: skip
    width = _LEFT + _WIDTH + 20
    size = f'width="{width}" height="{max(height, 80)}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {max(height, 80)}" {size}'
    head += ' font-family="sans-serif" font-size="12">'
    return "\n".join([head, f'<rect {size} fill="white"/>', *_legend(), *body, "</svg>", ""])


def _legend() -> Iterator[str]:
    for index, (kind, colour) in enumerate(_COLOURS.items()):
        x = _LEFT + 110 * index
        yield f'<rect x="{x}" y="8" width="12" height="12" fill="{colour}"/>'
        yield f'<text x="{x + 17}" y="18">{kind}</text>'


def _panel(method: MethodPlan, arena: ArenaMap, top: int) -> Iterator[str]:
    times = len(method.instructions) + 2
    step, scale = _WIDTH / times, _HEIGHT / max(1, arena.bytes)
    title = f"{method.name} planned[{arena.mem_id}]: {arena.bytes:,} B, at most {arena.live_peak_bytes:,} B live"
    yield f'<text x="{_LEFT}" y="{top - 8}">{_text(title)}</text>'
    yield f'<rect x="{_LEFT}" y="{top}" width="{_WIDTH}" height="{_HEIGHT}" fill="none" stroke="#888"/>'
    yield f'<text x="{_LEFT - 6}" y="{top + 12}" text-anchor="end">{arena.bytes:,}</text>'
    yield f'<text x="{_LEFT - 6}" y="{top + _HEIGHT}" text-anchor="end">0</text>'
    drawn = sorted(arena.placed, key=lambda place: -place.bytes)[:_MOST_PLACES]
    for place in drawn:
        yield _rectangle(place, top, step, scale)
    peak = _LEFT + (arena.peak + 1.5) * step
    ends = f'x1="{peak:.1f}" x2="{peak:.1f}" y1="{top}" y2="{top + _HEIGHT}"'
    yield f'<line {ends} stroke="black" stroke-dasharray="4 3"/>'
    where = f"peak at instruction {arena.peak}, {arena.peak_instruction}"
    yield f'<text x="{_LEFT}" y="{top + _HEIGHT + 16}">{_text(where)}</text>'


def _rectangle(place: Placed, top: int, step: float, scale: float) -> str:
    x = _LEFT + (place.first + 1) * step
    height = max(0.5, place.bytes * scale)
    y = top + _HEIGHT - (place.offset + place.bytes) * scale
    width = max(0.5, (place.last - place.first + 1) * step)
    label = f"{place.label} ({place.kind}), {place.bytes:,} B at {place.offset:,}, {place.first}..{place.last}"
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{_COLOURS[place.kind]}" '
        f'stroke="white" stroke-width="0.5"><title>{_text(label)}</title></rect>'
    )


def _text(text: str) -> str:
    return escape(clean(text, 160))
