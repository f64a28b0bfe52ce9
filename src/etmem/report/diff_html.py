"""A diff as the reports' page: two timelines on one scale, what moved, and why."""

from __future__ import annotations

from dataclasses import dataclass

from etmem.analysis.diff_model import Diff
from etmem.report.data import ReportData
from etmem.report.explain import Entry, entries
from etmem.report.html import page

VERSION = 1


@dataclass(frozen=True)
class DiffData:
    """``web/src/data.ts`` names the same fields. What tells it from a run's page is ``diff``."""

    version: int
    title: str
    diff: Diff
    a: ReportData
    b: ReportData
    words: tuple[Entry, ...]


def render(diff: Diff, a: ReportData, b: ReportData) -> str:
    """The same diff gives the same bytes. ``a`` and ``b`` need no blocks, stacks and plans."""
    title = f"{diff.a} \N{RIGHTWARDS ARROW} {diff.b}"
    data = DiffData(VERSION, title, diff, a, b, tuple(entries().values()))
    return page(data, title, f"etmem diff {diff.a} {diff.b} --full")
