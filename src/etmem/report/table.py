"""Lines of fixed width: the owner table with its bars, plain tables, and wrapped sentences."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from etmem.report.owners import Row
from etmem.report.units import Scale, shorten

MIN_WIDTH = 80


@dataclass(frozen=True)
class OwnerTable:
    """The owner table's columns. A wider page gives longer labels and longer bars."""

    scale: Scale
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    width: int = MIN_WIDTH

    def lines(self) -> list[str]:
        header = self.scale.unit
        for edge, name in zip(self._edges, self.columns, strict=True):
            header = header.ljust(edge - len(name)) + name
        return [header, *(self._line(row) for row in self.rows)]

    @property
    def _exact(self) -> bool:
        return self.scale.divisor == 1

    @property
    def _edges(self) -> tuple[int, ...]:
        """Where each column's numbers end; two more characters hold the mark of file-backed bytes."""
        first, step = (50, 14) if self._exact else (44, 12)
        return tuple(first + (self.width - MIN_WIDTH) // 2 + step * at for at in range(len(self.columns)))

    def _line(self, row: Row) -> str:
        numbers = [self.scale.number(cell.bytes) for cell in row.cells]
        text = _label(row, self._edges[0] - len(numbers[0]) - 1)
        for edge, number, cell in zip(self._edges, numbers, row.cells, strict=True):
            text = text.ljust(edge - len(number)) + number + (" f" if cell.only_file else "")
        bar = self._bar(row)
        return f"{text.ljust(self._bar_start)}{bar}" if bar else text

    @property
    def _bar_start(self) -> int:
        marked = any(row.cells[-1].only_file for row in self.rows)
        return self._edges[-1] + (3 if marked else 2)

    def _bar(self, row: Row) -> str:
        """Against the longest bar of the table; a figure that rounds to no mark has none."""
        if not row.bar or self._exact:
            return ""
        largest = max(other.peak for other in self.rows if other.bar)
        room = min(self.width - self._bar_start, 10 + (self.width - MIN_WIDTH) // 2)
        return "#" * round(room * row.peak / largest) if largest else ""


def _label(row: Row, room: int) -> str:
    label = " " * row.indent + row.label
    if row.detail:
        column = 26 if len(row.detail) <= 10 else 20 if len(row.detail) <= 16 else 0
        start = max(column, len(label) + 2)
        if start + len(row.detail) <= room:
            return label.ljust(start) + row.detail
    return shorten(label, room)


def grid(header: Sequence[str], rows: Sequence[Sequence[str]], left: int, width: int) -> list[str]:
    """A plain table: the first ``left`` columns are aligned left and share what room there is, the rest right."""
    cells = [list(header), *(list(row) for row in rows)]
    widths = [max(len(line[at]) for line in cells) for at in range(len(header))]
    while sum(widths) + 2 * (len(widths) - 1) > width and max(widths[:left], default=0) > 8:
        widest = max(range(left), key=lambda at: widths[at])
        widths[widest] -= 1
    lines = []
    for line in cells:
        parts = [
            shorten(text, widths[at]).ljust(widths[at]) if at < left else text.rjust(widths[at])
            for at, text in enumerate(line)
        ]
        lines.append("  ".join(parts).rstrip())
    return lines


def wrap(text: str, width: int, *, first: str = "", rest: str = "") -> list[str]:
    """Sentences at ``width``; words longer than a line (paths) are broken rather than let out."""
    return textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False, drop_whitespace=True
    ) or [first.rstrip()]


def join_parts(parts: Sequence[str], width: int, *, gap: str = "  ", indent: str = "  ") -> list[str]:
    """Parts side by side, on more lines when one is full; no part is split."""
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + len(gap) + len(part) <= width:
            lines[-1] += gap + part
        else:
            lines.append(shorten((indent if lines else "") + part, width))
    return lines
