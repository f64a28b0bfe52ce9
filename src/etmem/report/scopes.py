"""What the program called its own doings."""

from __future__ import annotations

from etmem.model.summary import Summary
from etmem.report.table import grid
from etmem.report.units import Scale, clean

NAME_LIMIT = 48


def named_scope_lines(summary: Summary, scale: Scale, width: int) -> list[str]:
    rows = [
        (
            clean(scope.name, NAME_LIMIT),
            f"{scope.entered:,}",
            scale.number(scope.allocated_bytes),
            f"{scope.allocations:,}",
            scale.number(scope.peak_bytes),
            scale.number(scope.live_end_bytes),
        )
        for scope in summary.named_scopes
    ]
    header = ("scope", "entered", "allocated", "allocations", "most live", "live at end")
    return [f"SCOPES  {scale.unit}, private and file, of every owner", *grid(header, rows, 1, width)] if rows else []
