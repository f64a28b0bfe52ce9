"""One program on several targets, side by side: counted bytes at the peaks, and what they are at that of inference."""

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

SCHEMA = "etmem.targets/1"
_CATEGORIES = 8
_BYTES = Scale("B", 1)


@dataclass(frozen=True)
class OnTarget:
    """A run, and what tells it from the others: the CPU's name, the preset, as they were asked for."""

    labels: tuple[str, ...]
    summary: Summary


def render(runs: Sequence[OnTarget], *, width: int = MIN_WIDTH) -> str:
    """ASCII lines, all digits, for targets differ in the last ones; a second table where one has no room for all."""
    width = max(width, MIN_WIDTH)
    lines = _head(runs, width)
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


def to_json(runs: Sequence[OnTarget]) -> str:
    """``etmem.targets/1``: the whole summary of each run."""
    targets = [{"labels": list(run.labels), "summary": to_data(run.summary)} for run in runs]
    data = {"schema": SCHEMA, "targets": targets}
    return json.dumps(data, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def _head(runs: Sequence[OnTarget], width: int) -> list[str]:
    """What all have in common."""
    summary = runs[0].summary
    program = summary.programs[0] if summary.programs else None
    target = summary.target
    parts = [file_name(program.path if program else None, 40)]
    if program is not None and program.file_bytes is not None:
        parts.append(file_size(program.file_bytes))
    parts += [f"executorch {clean(target.executorch, 20)}", "dry" if target.dry else "computed"]
    if len({run.summary.target.preset for run in runs}) == 1:
        parts.append(f"preset {clean(target.preset, 12)}")
    if len({(run.summary.target.arch, run.summary.target.cpu) for run in runs}) == 1:
        parts.append(f"{clean(target.arch, 12)} {clean(target.isa or target.cpu, 16)}")
    common = [o for o in target.backend_options if all(o in run.summary.target.backend_options for run in runs)]
    return join_parts([*parts, *(clean(option, 60) for option in common)], width)


def _table(runs: Sequence[OnTarget], columns: range) -> list[str]:
    """The peaks, then the largest categories of each owner; the rows are the same for any choice of columns."""
    held = [_categories(run.summary) for run in runs]
    largest = {key: max(part.get(key, 0) for part in held) for part in held for key in part}
    keys = sorted(largest, key=lambda key: (-largest[key], key))[:_CATEGORIES]
    owners = dict.fromkeys(owner for owner, _ in keys)
    labels = [(*runs[at].labels, runs[at].summary.target.isa) for at in columns]
    rows = [["", *(clean(label[at], 16) for label in labels)] for at in range(1, len(labels[0]))]
    for label, at_peak in zip(("PEAK of load", "PEAK of inference", "steady"), range(3), strict=True):
        rows.append([label, *(_BYTES.number(_peaks(runs[at].summary)[at_peak]) for at in columns)])
    for owner in owners:
        sums = [sum(size for key, size in part.items() if key[0] == owner) for part in held]
        rows.append([owner_name(owner), *(_BYTES.number(sums[at]) for at in columns)])
        for key in keys:
            if key[0] == owner:
                sizes = [_BYTES.number(held[at].get(key, 0)) for at in columns]
                rows.append([f"  {category_name(key[1])}", *sizes])
    return grid(["B", *(clean(label[0], 16) for label in labels)], rows, 1, 1000)


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
