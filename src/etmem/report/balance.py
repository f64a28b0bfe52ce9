"""The balance in sentences: what RSS is made of, and what the kernel's high water is made of."""

from __future__ import annotations

from etmem.model.summary import Balance, HighWater, Summary
from etmem.model.words import EXECUTORCH, PROFILER, is_counted
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
    """The balance at rest and the higher high water. Nothing for a dry run."""
    lines: list[str] = []
    balance = next((b for b in summary.balances if b.at == AT_REST), None)
    if balance is not None:
        lines += _at_rest(balance, scale, width)
    water = _highest(summary)
    if water is not None:
        lines += _high_water(water, scale, width)
    return lines


def _at_rest(balance: Balance, scale: Scale, width: int) -> list[str]:
    sums: dict[str, int] = {}
    for line in balance.lines:
        name = _short_name(line.line)
        sums[name] = sums.get(name, 0) + line.bytes
    owners = sorted((name for name in sums if name in _owner_names(balance)), key=lambda name: -sums[name])
    ordered = dict.fromkeys([*owners, *sums])
    # A term that prints as zero says nothing; unaccounted always stands.
    terms_of = [(name, sums[name]) for name in ordered if scale.fine(abs(sums[name])) != scale.fine(0)]
    terms_of.append(("unaccounted", balance.unaccounted_bytes))
    terms = [_sign(size, scale) + f"{name} {scale.fine(abs(size))}" for name, size in terms_of]
    return _sum(f"RSS at rest {scale.plain(balance.rss_bytes)}", terms, width)


def _owner_names(balance: Balance) -> set[str]:
    return {_short_name(line.line) for line in balance.lines if is_counted(line.line)}


def _high_water(water: HighWater, scale: Scale, width: int) -> list[str]:
    before, other = water.before_bytes, water.other_bytes
    if before < 0:
        # Mapped bytes are counted before they are resident: less was there than had been counted.
        before, other = 0, before + other
    sizes = [(water.counted_bytes, "counted"), (before, f"before {water.at}"), (other, "other")]
    sizes = [(size, name) for size, name in sizes if size or name == "other"]
    terms = [_sign(size, scale) + f"{scale.plain(abs(size))} {name}" for size, name in sizes]
    return _sum(f"Kernel's high water in {water.at} {scale.plain(water.high_water_bytes)}", terms, width)


def _highest(summary: Summary) -> HighWater | None:
    return max(summary.high_waters, key=lambda water: water.high_water_bytes, default=None)


def _sign(size: int, scale: Scale) -> str:
    # A remainder of minus four bytes would read as "- unaccounted 0.00".
    return "- " if size < 0 and scale.fine(-size) != scale.fine(0) else "+ "


def _sum(head: str, terms: list[str], width: int) -> list[str]:
    """``head = a + b``, wrapped before a sign, which stands under the equals sign."""
    first = terms[0].removeprefix("+ ")
    indent = " " * (len(head) + 1)
    return join_parts([f"{head} = {first}", *terms[1:]], width, gap=" ", indent=indent)
