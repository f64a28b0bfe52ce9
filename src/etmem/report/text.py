"""The text report: the first screen, and with ``full`` everything else."""

from __future__ import annotations

from pathlib import Path

from etmem.model.summary import Summary
from etmem.report.first_screen import first_screen
from etmem.report.full import full_report
from etmem.report.table import MIN_WIDTH

EXACT_WIDTH = 112


def render(
    summary: Summary,
    *,
    width: int = MIN_WIDTH,
    bytes_exact: bool = False,
    full: bool = False,
    trace_path: str | Path | None = None,
) -> str:
    """ASCII text of lines at most ``width`` wide (80 at least), with a newline at the end.

    ``bytes_exact`` prints all digits instead of MiB or KiB; the tables of ``full`` are then EXACT_WIDTH wide.
    """
    width = max(width, MIN_WIDTH)
    trace = str(trace_path) if trace_path is not None else None
    text = first_screen(summary, width, exact=bytes_exact, full=full, trace_path=trace)
    return (
        f"{text}\n{full_report(summary, max(width, EXACT_WIDTH) if bytes_exact else width, exact=bytes_exact)}"
        if full
        else text
    )
