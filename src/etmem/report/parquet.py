"""The tables as Parquet: blocks.parquet, events.parquet, phases.parquet and operators.parquet in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from etmem.model.errors import UsageError
from etmem.report.tables import Column, Table, tables
from etmem.report.view import View

_TEXT = {
    "kind",
    "file",
    "owner",
    "instance",
    "category",
    "phase",
    "scope_name",
    "method",
    "operator",
    "reason",
    "at",
    "source_file",
}
_UNSIGNED = {"address", "size", "stamp"}
_TRUTH = {"failed"}


def write(view: View, folder: Path) -> None:
    """Raises UsageError where pyarrow is not installed."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise UsageError("Parquet needs pyarrow", "pip install 'etmem[parquet]', or --csv") from None
    for table in tables(view):
        schema = _schema(pa, table)
        with parquet.ParquetWriter(folder / f"{table.name}.parquet", schema, compression="zstd") as file:
            for batch in table.batches:
                columns = [_array(pa, batch[field.name], field.type) for field in schema]
                file.write_table(pa.Table.from_arrays(columns, schema=schema))


def _schema(pa: Any, table: Table) -> Any:
    """Types by name: the first batch of a column may be empty."""

    def kind(name: str) -> Any:
        if name in _TEXT:
            return pa.dictionary(pa.int32(), pa.string())
        if name in _TRUTH:
            return pa.bool_()
        return pa.uint64() if name in _UNSIGNED else pa.int64()

    return pa.schema([(name, kind(name)) for name in table.columns])


def _array(pa: Any, column: Column, kind: Any) -> Any:
    if pa.types.is_dictionary(kind):
        # Surrogates of a path that is not valid UTF-8 are no string to Arrow.
        texts = [text if text is None else str(text).encode("utf-8", "backslashreplace").decode() for text in column]
        return pa.array(texts, pa.string()).dictionary_encode().cast(kind)
    return pa.array(column).cast(kind)
