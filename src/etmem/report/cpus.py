"""One program on several CPUs, side by side: counted bytes at the peaks, and what they are at that of inference."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from etmem.model.codec import to_data
from etmem.model.summary import Peak, Summary
from etmem.model.words import Category, is_counted
from etmem.report.names import category_name, owner_name
from etmem.report.table import MIN_WIDTH, grid, join_parts
from etmem.report.units import Scale, clean, file_name, file_size

SCHEMA = "etmem.cpus/1"
_CATEGORIES = 8
_BYTES = Scale("B", 1)


@dataclass(frozen=True)
class OnCpu:
    """A run, and the name that the CPU was asked for by."""

    cpu: str
    summary: Summary


def render(runs: Sequence[OnCpu], *, width: int = MIN_WIDTH) -> str:
    """ASCII lines, all digits, for CPUs differ in the last ones; a second table where one has no room for all."""
    width = max(width, MIN_WIDTH)
    lines = _head(runs[0].summary, width)
    first = 0
    while first < len(runs):
        last = len(runs)
        table = _table(runs, range(first, last))
        while max(map(len, table)) > width and last > first + 1:
            last -= 1
            table = _table(runs, range(first, last))
        lines += table if first == 0 else ["", *table]
        first = last
    return "\n".join(lines) + "\n"


def to_json(runs: Sequence[OnCpu]) -> str:
    """``etmem.cpus/1``: the whole summary of each run."""
    data = {"schema": SCHEMA, "cpus": [{"cpu": run.cpu, "summary": to_data(run.summary)} for run in runs]}
    return json.dumps(data, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def _head(summary: Summary, width: int) -> list[str]:
    program = summary.programs[0] if summary.programs else None
    target = summary.target
    parts = [file_name(program.path if program else None, 40)]
    if program is not None and program.file_bytes is not None:
        parts.append(file_size(program.file_bytes))
    parts += [f"executorch {clean(target.executorch, 20)}", "dry" if target.dry else "computed"]
    parts.append(f"preset {clean(target.preset, 12)}")
    return join_parts([*parts, *(clean(option, 60) for option in target.backend_options)], width)


def _table(runs: Sequence[OnCpu], columns: range) -> list[str]:
    """The peaks, then the largest categories of each owner; the rows are the same for any choice of columns."""
    held = [_categories(run.summary) for run in runs]
    largest = {key: max(part.get(key, 0) for part in held) for part in held for key in part}
    keys = sorted(largest, key=lambda key: (-largest[key], key))[:_CATEGORIES]
    owners = dict.fromkeys(owner for owner, _ in keys)
    rows = [["", *(clean(runs[at].summary.target.isa, 10) for at in columns)]]
    for label, at_peak in zip(("PEAK of load", "PEAK of inference", "steady"), range(3), strict=True):
        rows.append([label, *(_BYTES.number(_peaks(runs[at].summary)[at_peak]) for at in columns)])
    for owner in owners:
        sums = [sum(size for key, size in part.items() if key[0] == owner) for part in held]
        rows.append([owner_name(owner), *(_BYTES.number(sums[at]) for at in columns)])
        for key in keys:
            if key[0] == owner:
                sizes = [_BYTES.number(held[at].get(key, 0)) for at in columns]
                rows.append([f"  {category_name(key[1])}", *sizes])
    return grid(["B", *(clean(runs[at].cpu, 16) for at in columns)], rows, 1, 1000)


def _peaks(summary: Summary) -> tuple[int, int, int]:
    return _total(summary.peaks.load), _total(summary.peaks.inference), _total(summary.peaks.steady)


def _total(peak: Peak | None) -> int:
    return 0 if peak is None else peak.moment.private_bytes + peak.moment.file_bytes


def _categories(summary: Summary) -> dict[tuple[str, Category], int]:
    """Private and file bytes at the peak of inference, over all instances."""
    found: dict[tuple[str, Category], int] = {}
    for held in summary.peaks.inference.moment.owners if summary.peaks.inference else ():
        if is_counted(held.owner):
            for part in held.categories:
                key = held.owner, part.category
                found[key] = found.get(key, 0) + part.private_bytes + part.file_bytes
    return found
