"""A diff of two program files as text, JSON, Markdown and HTML."""

from __future__ import annotations

import json
from dataclasses import dataclass

from etmem.analysis.diff_program import FileChange, ProgramDiff
from etmem.model.codec import to_data
from etmem.report.explain import Entry, entries
from etmem.report.markdown_table import code, table
from etmem.report.table import MIN_WIDTH, grid, join_parts
from etmem.report.units import clean

VERSION = 1
_HEADER = ("change", "what", "a", "b")


@dataclass(frozen=True)
class ProgramsData:
    """``web/src/data.ts`` names the same fields. What tells it from other pages is ``programs``."""

    version: int
    title: str
    programs: ProgramDiff
    words: tuple[Entry, ...]


def render(diff: ProgramDiff, *, width: int = MIN_WIDTH) -> str:
    head = join_parts([f"{clean(diff.a, 60)} -> {clean(diff.b, 60)}", "from the files alone"], width, gap="     ")
    if diff.empty:
        return "\n".join([*head, "no change in what the files say of memory"]) + "\n"
    rows = [_row(change) for change in diff.changes if _is_shown(change)]
    width_of_change = max(len(row[0]) for row in rows)
    cells = [(row[0].rjust(width_of_change), *row[1:]) for row in rows]
    return "\n".join([*head, *grid(("", *_HEADER[1:]), cells, 2, width)]) + "\n"


def to_json(diff: ProgramDiff) -> str:
    data = to_data(diff)
    return json.dumps({"schema": data.pop("schema"), **data}, indent=2, ensure_ascii=True) + "\n"


def to_html(diff: ProgramDiff) -> str:
    """The reports' page, with every change in one table."""
    from etmem.report.html import page

    title = f"{diff.a} \N{RIGHTWARDS ARROW} {diff.b}"
    data = ProgramsData(VERSION, title, diff, tuple(entries().values()))
    return page(data, title, f"etmem diff {diff.a} {diff.b}")


def to_markdown(diff: ProgramDiff) -> str:
    head = f"### {code(diff.a)} → {code(diff.b)}\n\n"
    if diff.empty:
        return head + "No change in what the files say of memory.\n"
    return head + table(_HEADER, [_row(change) for change in diff.changes if _is_shown(change)], "rlrr")


def _is_shown(change: FileChange) -> bool:
    """Categories at the peak of inference; those of load and at rest are in the JSON."""
    return change.what not in ("estimate of load", "estimate of steady")


def _row(change: FileChange) -> tuple[str, ...]:
    words = (change.method, change.what.replace("_", " ").removeprefix("estimate of "), _name(change))
    what = " ".join(part for part in words if part)
    unit = f" {change.unit}" if change.unit else ""
    return (f"{change.delta:+,}{unit}", clean(what, 60), _figure(change.a), _figure(change.b))


def _name(change: FileChange) -> str:
    """A planned buffer is told by its own name, a part of an estimate by its owner's short one."""
    if change.what.startswith("estimate of "):
        return change.name.removeprefix("delegate:").replace("executorch ", "ExecuTorch ").replace("_", " ")
    return change.name.removeprefix("planned") if change.what == "planned" else change.name


def _figure(count: int | None) -> str:
    return "none" if count is None else f"{count:,}"
