"""``etmem.summary/1`` as JSON. The same summary gives the same bytes; fields come in a fixed order."""

from __future__ import annotations

import json
from typing import Any

from etmem.model.codec import CodecError, from_data, to_data
from etmem.model.errors import InputError
from etmem.model.summary import SCHEMA, Summary


def to_json(summary: Summary) -> str:
    """ASCII, two spaces of indent, a newline at the end; ``schema`` is the first field."""
    data = to_data(summary)
    # ASCII also keeps file names that are not valid UTF-8 (surrogates) through any encoding.
    text = json.dumps({"schema": data.pop("schema"), **data}, indent=2, ensure_ascii=True, allow_nan=False)
    return text + "\n"


def from_json(text: str) -> Summary:
    """The summary of a ``to_json`` text. Fields of later versions are ignored. Raises InputError."""
    data = _parse(text)
    schema = data.get("schema")
    if schema != SCHEMA:
        raise InputError(
            f"not a summary: its schema is {str(schema)[:60]!r}, not {SCHEMA!r}", "write it with etmem ... --json FILE"
        )
    try:
        return from_data(Summary, data)
    except CodecError as error:
        raise InputError(
            f"the summary is malformed at {error}", f"docs/reference/summary.md describes {SCHEMA}"
        ) from error


def _parse(text: str) -> dict[str, Any]:
    try:
        data = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {error}", "a summary is what etmem ... --json FILE writes") from error
    if not isinstance(data, dict):
        raise InputError("not a summary: the JSON is no object", "a summary is what etmem ... --json FILE writes")
    return data


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")
