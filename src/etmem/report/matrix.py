"""The rows of a matrix as a table, JSON, Markdown and Parquet."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from etmem.matrix.model import ROWS_SCHEMA, Entry, Row, RowStatus
from etmem.model.codec import to_data
from etmem.model.errors import EtmemError, UsageError, reason
from etmem.report.markdown_table import table
from etmem.report.table import MIN_WIDTH, grid, wrap
from etmem.report.units import Scale, choose_scale, clean, shorten

_HEADER = ("file", "load", "first", "steady", "peak", "x file")


def render(rows: Sequence[Row], *, width: int = MIN_WIDTH, exact: bool = False) -> str:
    """One line per row; below it what went wrong."""
    scale = choose_scale(max((row.peak_bytes or 0 for row in rows), default=0), exact=exact)
    labels = list(dict.fromkeys(clean(label(row)) for row in rows))
    cells = [(clean(row.program), str(labels.index(clean(label(row))) + 1), *_figures(row, scale)) for row in rows]
    lines = grid((scale.unit, "options", *_HEADER), cells, 1, width)
    lines += [shorten(f"options {at + 1}: {text or 'the defaults'}", width) for at, text in enumerate(labels)]
    for row in rows:
        if row.status is not RowStatus.OK:
            text = f"{row.status.value}: {clean(row.program, 40)} {clean(label(row), 60)}: {clean(row.message, 300)}"
            lines += wrap(text, width, rest="  ")
    return "\n".join(lines) + "\n"


def to_json(rows: Sequence[Row]) -> str:
    """``etmem.matrix-rows/1``."""
    data = [{**to_data(row), "ratio": row.ratio} for row in rows]
    return json.dumps({"schema": ROWS_SCHEMA, "rows": data}, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def to_markdown(rows: Sequence[Row]) -> str:
    scale = choose_scale(max((row.peak_bytes or 0 for row in rows), default=0))
    cells = [(clean(row.program), clean(label(row)), *_figures(row, scale), row.status.value) for row in rows]
    return table((f"{scale.unit}", "options", *_HEADER, ""), cells, "llrrrrrrl")


def write_parquet(rows: Sequence[Row], path: Path) -> None:
    """All rows; options are columns of their own, named ``option.<name>``, as text."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise UsageError("Parquet needs pyarrow", "pip install 'etmem[parquet]'") from error
    names = list(dict.fromkeys(name for row in rows for name in row.options))
    records = []
    for row in rows:
        data = to_data(row)
        options = data.pop("options")
        chosen = {f"option.{name}": json.dumps(options[name]) if name in options else None for name in names}
        records.append({**data, "ratio": row.ratio, **chosen})
    try:
        parquet.write_table(pa.Table.from_pylist(records), path)
    except OSError as error:
        raise EtmemError(
            f"cannot write {path}: {reason(error)}", "give a file in a folder that can be written"
        ) from error


def label(row: Row) -> str:
    return Entry(Path(row.program), row.digest, row.options).label


def _figures(row: Row, scale: Scale) -> tuple[str, ...]:
    counts = (row.file_bytes, row.load_bytes, row.first_bytes, row.steady_bytes, row.peak_bytes)
    numbers = tuple("none" if count is None else scale.number(count) for count in counts)
    return (*numbers, "none" if row.ratio is None else f"{row.ratio:.1f}")
