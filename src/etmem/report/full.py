"""What ``--full`` adds to the first screen: every phase, arena, block, delegate, balance, and the environment."""

from __future__ import annotations

from collections.abc import Callable

from etmem.model.summary import BalanceLine, Summary
from etmem.report.balance import line_name
from etmem.report.first_screen import page_scale
from etmem.report.holdings import arena_lines, delegate_lines, largest_block_lines, owner_peak_lines, peak_owner_lines
from etmem.report.operators import (
    delegate_operator_lines,
    instruction_lines,
    peak_part_lines,
    planned_tensor_lines,
)
from etmem.report.phases import phase_lines
from etmem.report.scopes import named_scope_lines
from etmem.report.table import grid, join_parts, wrap
from etmem.report.told import counter_lines, device_lines, label_lines
from etmem.report.units import Scale, clean

Section = Callable[[Summary, Scale, int], list[str]]


def full_report(summary: Summary, width: int, *, exact: bool) -> str:
    """The sections that have something to say, an empty line between them."""
    scale = page_scale(summary, exact=exact)
    sections = (section(summary, scale, width) for section in SECTIONS)
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def balance_table_lines(summary: Summary, scale: Scale, width: int) -> list[str]:
    """One column per snapshot; the source is that of the line wherever it stands."""
    if not summary.balances:
        return []
    names = dict.fromkeys(line.line for balance in summary.balances for line in balance.lines)
    rows = [(line_name(name), *_across(summary, name, scale)) for name in names]
    rows.append(("unaccounted", "inferred", *(scale.fine(b.unaccounted_bytes) for b in summary.balances)))
    rows.append(("RSS", "measured", *(scale.fine(b.rss_bytes) for b in summary.balances)))
    header = ("line", "source", *(clean(b.at, 16).replace("_", " ") for b in summary.balances))
    return [f"BALANCE  {scale.unit}, resident at the end of", *grid(header, rows, 2, width)]


def _across(summary: Summary, name: str, scale: Scale) -> tuple[str, ...]:
    found: list[BalanceLine | None] = [next((x for x in b.lines if x.line == name), None) for b in summary.balances]
    source = next(line.source.value for line in found if line is not None)
    return source, *(scale.fine(line.bytes) if line is not None and line.bytes else "-" for line in found)


def high_water_lines(summary: Summary, scale: Scale, width: int) -> list[str]:
    rows = [
        (w.at, *(scale.fine(n) for n in (w.high_water_bytes, w.counted_bytes, w.before_bytes, w.other_bytes)))
        for w in summary.high_waters
    ]
    header = ("in", "kernel's high water", "counted", "before", "other")
    return [f"HIGH WATER  {scale.unit}", *grid(header, rows, 1, width)] if rows else []


def environment_lines(summary: Summary, _scale: Scale, width: int) -> list[str]:
    target, where = summary.target, summary.environment
    limit = "unlimited" if where.memlock_limit_bytes is None else f"{where.memlock_limit_bytes:,} B"
    parts = [
        f"cpu {clean(target.cpu, 48)}",
        f"{target.pointer_bytes * 8}-bit",
        f"executorch {clean(target.executorch, 24)}",
        f"runtime {clean(target.runtime, 12)}",
        f"loader {clean(target.loader, 12)}",
        f"iterations {target.iterations}",
        f"etmem {clean(where.etmem, 16)}",
        f"python {clean(where.python, 16)}",
        f"{clean(where.platform, 48)}",
        f"kernel {clean(where.kernel, 32)}",
        f"libc {clean(where.libc, 24)}",
        f"allocator {clean(where.allocator, 24)}",
        f"pages {where.page_bytes:,} B",
        f"memlock {limit}",
        f"exit status {'unknown' if where.exit_status is None else where.exit_status}",
    ]
    command = wrap(clean(" ".join(where.command), 400), width, first="command  ", rest="  ") if where.command else []
    return ["TARGET AND ENVIRONMENT", *join_parts(parts, width, indent=""), *command]


SECTIONS: tuple[Section, ...] = (
    phase_lines,
    peak_owner_lines,
    owner_peak_lines,
    arena_lines,
    device_lines,
    largest_block_lines,
    label_lines,
    delegate_lines,
    peak_part_lines,
    delegate_operator_lines,
    instruction_lines,
    planned_tensor_lines,
    named_scope_lines,
    balance_table_lines,
    high_water_lines,
    counter_lines,
    environment_lines,
)
