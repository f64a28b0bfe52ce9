"""The estimate as a table: owners and categories at load, inference and rest, and how sure each line is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from etmem.model.words import EXECUTORCH
from etmem.report.names import category_name, owner_name
from etmem.report.table import join_parts
from etmem.report.units import ratio, shorten

if TYPE_CHECKING:
    from etmem.delegates.estimating import Sureness
    from etmem.planning.model import Forecast, Line, ProgramPlan
    from etmem.report.units import Scale

_PEAKS = ("load", "inference", "later")
_MOMENTS = ("load", "inference", "steady")
_NAMES = {"later": "  of later inferences"}
_SMALL = 0.001
"""Categories below this share of the peak are one line."""
_EDGES = (44, 56, 68)
_EXACT_EDGES = (38, 53, 68)


def estimate_lines(plan: ProgramPlan, scale: Scale, width: int) -> list[str]:
    moments = [forecast for at in _MOMENTS if (forecast := plan.forecast(at)) is not None]
    if not moments:
        return []
    peaks = [forecast for at in _PEAKS if (forecast := plan.forecast(at)) is not None]
    lines = [_peak(forecast, plan.contents[0].file_bytes, scale, width) for forecast in peaks]
    edges = _EXACT_EDGES if scale.divisor == 1 else _EDGES
    header = scale.unit
    for edge, forecast in zip(edges, moments, strict=True):
        header = header.ljust(edge - len(forecast.at)) + forecast.at
    lines.append(f"{header}  how")
    largest = max(forecast.private_bytes + forecast.file_bytes for forecast in moments)
    owners = dict.fromkeys(line.owner for forecast in moments for line in forecast.lines)
    for owner in sorted(owners, key=lambda owner: -_most(moments, owner)):
        lines += _owner(owner, moments, largest * _SMALL, scale, edges)
    return lines


def _peak(forecast: Forecast, file_bytes: int, scale: Scale, width: int) -> str:
    total = forecast.private_bytes + forecast.file_bytes
    interval = ""
    if forecast.high_bytes is None:
        interval = "at least"
    elif (forecast.low_bytes, forecast.high_bytes) != (total, total):
        low, high = scale.plain(forecast.low_bytes), scale.plain(forecast.high_bytes)
        interval = f"{low} to {high}" if low != high else ""
    parts = [
        _NAMES.get(forecast.at, f"ESTIMATE of {forecast.at}").ljust(22)
        + scale.number(total).rjust(6)
        + f" {scale.unit}",
        f"{scale.number(forecast.private_bytes):>5} private + {scale.number(forecast.file_bytes):>4} file",
        f"{ratio(total, file_bytes):>4} x file",
        interval or str(forecast.sure),
    ]
    return join_parts(parts, max(width, 120))[0]


def _most(moments: list[Forecast], owner: str) -> int:
    return max(sum(_bytes(line) for line in forecast.lines if line.owner == owner) for forecast in moments)


def _bytes(line: Line) -> int:
    return line.private_bytes + line.file_bytes


def _owner(owner: str, moments: list[Forecast], small: float, scale: Scale, edges: tuple[int, ...]) -> list[str]:
    mine = [[line for line in forecast.lines if line.owner == owner] for forecast in moments]
    name = owner_name(owner)
    instances = {line.instance for lines in mine for line in lines if line.instance}
    if owner != EXECUTORCH and instances:
        name += f" x{len(instances)}" if len(instances) > 1 else ""
    rows = [_row(name, mine, scale, edges, "")]
    categories = dict.fromkeys(line.category for lines in mine for line in lines)
    rest: list[list[Line]] = [[] for _ in mine]
    for category in sorted(categories, key=lambda entry: -max(_sum(lines, entry) for lines in mine)):
        parts = [[line for line in lines if line.category == category] for lines in mine]
        if max(sum(map(_bytes, lines)) for lines in parts) < small and len(categories) > 1:
            rest = [[*held, *more] for held, more in zip(rest, parts, strict=True)]
            continue
        rows.append(_row(f"  {category_name(category)}", parts, scale, edges, str(_least(parts))))
    if any(rest):
        names = ", ".join(dict.fromkeys(category_name(line.category) for lines in rest for line in lines))
        rows.append(_row(f"  {names}", rest, scale, edges, str(_least(rest))))
    return rows


def _sum(lines: list[Line], category: object) -> int:
    return sum(_bytes(line) for line in lines if line.category == category)


def _least(parts: list[list[Line]]) -> Sureness:
    return max((line.sure for lines in parts for line in lines), key=lambda sure: sure.rank)


def _row(label: str, parts: list[list[Line]], scale: Scale, edges: tuple[int, ...], how: str) -> str:
    numbers = [scale.number(sum(map(_bytes, lines))) for lines in parts]
    text = shorten(label, edges[0] - len(numbers[0]) - 1)
    for edge, number, lines in zip(edges, numbers, parts, strict=True):
        only_file = bool(lines) and not any(line.private_bytes for line in lines)
        text = text.ljust(edge - len(number)) + number + (" f" if only_file else "")
    return f"{text.ljust(edges[-1] + 2)} {how}".rstrip() if how else text
