"""Leak or retention, as text and JSON."""

from __future__ import annotations

import json

from etmem.analysis.cycles import Cycles, Leak
from etmem.model.codec import to_data
from etmem.report.demangle import demangle
from etmem.report.names import category_name, owner_name
from etmem.report.table import MIN_WIDTH, grid, wrap
from etmem.report.units import Scale, choose_scale, clean

_STACK = 6
_LEAKS = 5


def render(found: Cycles, *, name: str, width: int = MIN_WIDTH, full: bool = False) -> str:
    """ASCII lines of at most ``width`` (80 at least)."""
    width = max(width, MIN_WIDTH)
    lines = wrap(f"{clean(name, 40)}  {len(found.cycles)} cycles of load, run and unload", width)
    lines += _table(found, width)
    if not found.complete:
        lines.append("the run ended before its last cycle")
    lines += ["", *_verdict(found, width)]
    shown = found.leaks if full else found.leaks[:_LEAKS]
    for leak in shown:
        lines += _leak(leak, width)
    if len(shown) < len(found.leaks):
        lines.append(f"  and {len(found.leaks) - len(shown)} smaller ones: --full")
    lines += _retention(found, width)
    return "\n".join(lines) + "\n"


def to_json(found: Cycles) -> str:
    """``etmem.cycles/1``; ``schema`` is the first field."""
    data = to_data(found)
    for cycle, row in zip(found.cycles, data["cycles"], strict=True):
        row["retained_bytes"] = cycle.retained_bytes
    head = {"schema": data.pop("schema"), "leaked_bytes_per_cycle": found.leaked_bytes_per_cycle}
    return json.dumps({**head, **data}, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def _table(found: Cycles, width: int) -> list[str]:
    known = [cycle.rss_growth_bytes or 0 for cycle in found.cycles] + [cycle.live_bytes for cycle in found.cycles]
    scale = choose_scale(max(known))
    header = (f"{scale.unit}, after unload", "live bytes", "RSS growth", "after malloc_trim", "malloc kept")
    rows = [
        (
            f"cycle {number + 1}",
            f"{cycle.live_bytes:,} B",
            _maybe(scale, cycle.rss_growth_bytes),
            _maybe(scale, cycle.rss_growth_trimmed_bytes),
            _maybe(scale, cycle.retained_bytes),
        )
        for number, cycle in enumerate(found.cycles)
    ]
    return grid(header, rows, 1, width)


def _maybe(scale: Scale, count: int | None) -> str:
    return "none" if count is None else scale.number(count)


def _verdict(found: Cycles, width: int) -> list[str]:
    if len(found.cycles) < 2:
        return ["no verdict: a leak shows from the second cycle on"]
    last = found.cycles[-1]
    stays = ", ".join(f"{owner_name(one.owner)} {one.bytes:,} B in {one.blocks}" for one in last.owners) or "nothing"
    if not found.leaks:
        growth = last.live_bytes - found.cycles[0].live_bytes
        text = f"NO LEAK  the same blocks stay after each cycle: {stays}"
        return wrap(text if growth == 0 else f"{text}; {growth:+,} B since the first cycle", width, rest="  ")
    text = f"LEAK  {found.leaked_bytes_per_cycle:,} B a cycle. After the last one stay: {stays}"
    return wrap(text, width, rest="  ")


def _leak(leak: Leak, width: int) -> list[str]:
    where = leak.instance or owner_name(leak.owner)
    counts = ", ".join(map(str, leak.live_blocks))
    text = (
        f"{clean(where, 60)} {category_name(leak.category)}: {leak.bytes_per_cycle:,} B a cycle, blocks of "
        f"{leak.requested_bytes:,} B from {leak.phase or 'outside of any phase'}; live after each: {counts}"
    )
    lines = wrap(text, width, first="  ", rest="    ")
    return lines + [f"      {clean(demangle(name), width - 6)}" for name in leak.stack[:_STACK]]


def _retention(found: Cycles, width: int) -> list[str]:
    kept = [cycle.retained_bytes for cycle in found.cycles if cycle.retained_bytes is not None]
    if not kept:
        return []
    most = max(kept)
    scale = choose_scale(most)
    text = (
        f"RETENTION  up to {scale.with_unit(most)} of free memory stays with malloc after an unload and goes with "
        "malloc_trim: it is no leak, though RSS looks like one."
    )
    quiet = "RETENTION  none to speak of: malloc gives back what the program frees."
    return wrap(text if most >= 1 << 20 else quiet, width, rest="  ")
