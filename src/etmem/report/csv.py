"""The tables as CSV: blocks.csv, events.csv, phases.csv and operators.csv in a folder."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from etmem.report.tables import Column, tables
from etmem.report.view import View


def write(view: View, folder: Path) -> None:
    """UTF-8 with a header line; an empty cell is a value that is not known or does not apply."""
    for table in tables(view):
        with (folder / f"{table.name}.csv").open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(table.columns)
            for batch in table.batches:
                rows.writerows(zip(*(_plain(batch[name]) for name in table.columns), strict=True))


def _plain(column: Column) -> list[object]:
    values = column.tolist() if isinstance(column, np.ndarray) else column
    return [_cell(value) for value in values] if values and isinstance(values[0], str | None) else list(values)


def _cell(value: object) -> object:
    """A name that a spreadsheet would take for a formula begins with an apostrophe."""
    return f"'{value}" if isinstance(value, str) and value[:1] in tuple("=+-@\t\r") else value
