"""The balance in sentences: what RSS is made of, and what the kernel's high water is made of."""

from __future__ import annotations

from etmem.model.summary import Balance, HighWater, Summary
from etmem.model.words import EXECUTORCH, PROFILER
from etmem.report.names import owner_name
from etmem.report.table import join_parts
from etmem.report.units import Scale, clean

AT_REST = "last_inference"

LIBRARIES_OF = "libraries of "
"""Begins the line of a delegate's libraries: ``libraries of OpenvinoBackend``."""

_SHORT = {
    "other libraries": "libraries",
    "stacks": "process and malloc",
    "retained by malloc": "process and malloc",
    PROFILER: "process and malloc",
}
"""What the first screen calls a line; lines of one name are summed. ``--full`` lists them one by one."""


def line_name(line: str) -> str:
    """A balance line's name in the full report."""
    if line == EXECUTORCH or line.startswith("delegate:"):
        return owner_name(line)
    return clean(line, 40)


def _short_name(line: str) -> str:
    return "libraries" if line.startswith(LIBRARIES_OF) else _SHORT.get(line) or line_name(line)


def balance_lines(summary: Summary, scale: Scale, width: int) -> list[str]:
    """The balance at rest and the high water of the higher peak. Nothing for a dry run."""
    lines: list[str] = []
    balance = next((b for b in summary.balances if b.at == AT_REST), None)
    if balance is not None:
        lines += _at_rest(balance, scale, width)
    water = _water_of_peak(summary)
    if water is not None:
        lines += _high_water(water, scale, width)
    return lines


def _at_rest(balance: Balance, scale: Scale, width: int) -> list[str]:
    sums: dict[str, int] = {}
    for line in balance.lines:
        name = _short_name(line.line)
        sums[name] = sums.get(name, 0) + line.bytes
    sums = {name: size for name, size in sums.items() if size} | {"unaccounted": balance.unaccounted_bytes}
    terms = [_sign(size, scale) + f"{name} {scale.fine(abs(size))}" for name, size in sums.items()]
    return _sum(f"RSS at rest {scale.plain(balance.rss_bytes)}", terms, width)


def _high_water(water: HighWater, scale: Scale, width: int) -> list[str]:
    sizes = ((water.counted_bytes, "counted"), (water.before_bytes, f"before {water.at}"), (water.other_bytes, "other"))
    terms = [_sign(size, scale) + f"{scale.plain(abs(size))} {name}" for size, name in sizes]
    return _sum(f"Kernel's high water in {water.at} {scale.plain(water.high_water_bytes)}", terms, width)


def _water_of_peak(summary: Summary) -> HighWater | None:
    return max(summary.high_waters, key=lambda water: water.counted_bytes, default=None)


def _sign(size: int, scale: Scale) -> str:
    # A remainder of minus four bytes would read as "- unaccounted 0.00".
    return "- " if size < 0 and scale.fine(-size) != scale.fine(0) else "+ "


def _sum(head: str, terms: list[str], width: int) -> list[str]:
    """``head = a + b``, wrapped before a sign, which stands under the equals sign."""
    first = terms[0].removeprefix("+ ")
    indent = " " * (len(head) + 1)
    return join_parts([f"{head} = {first}", *terms[1:]], width, gap=" ", indent=indent)
