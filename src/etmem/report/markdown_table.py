"""Tables and words for Markdown, safe for names that come from files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from etmem.report.units import clean

_MARKS = {"l": ":--", "r": "--:"}


def table(header: Sequence[str], rows: Iterable[Sequence[str]], align: str) -> str:
    """A GitHub table; ``align`` has one ``l`` or ``r`` per column."""
    lines = [_line(header), _line([_MARKS[mark] for mark in align]), *(_line(row) for row in rows)]
    return "\n".join(lines) + "\n"


def code(name: str) -> str:
    """A name from outside as code: no backtick, and no bar that would end a cell."""
    return f"`{clean(name, 80).replace('`', chr(39))}`"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
