"""Memory inside an ETDump: JSON in the metadata of delegate events, which every Inspector passes on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from etmem.model.summary import InstructionBytes

FORMAT = 1
INSTRUCTION = "etmem.memory"
"""Identifier of the event beside each instruction's own: a plain event's metadata is not parsed by Inspector."""
RUN = "etmem.run"
"""Identifier of the event that ends each inference's block: its totals, and which run they are of."""

LARGEST = ("live_before_bytes", "live_after_bytes", "peak_bytes", "temp_peak_bytes", "planned_live_bytes")
SUMMED = ("allocated_bytes", "allocations", "freed_bytes", "temp_bytes")
COLUMNS = (*LARGEST[:3], *SUMMED, *LARGEST[3:])


def memory_of(row: InstructionBytes) -> dict[str, int | None]:
    """The figures of one instruction under their names."""
    return {name: getattr(row, name) for name in COLUMNS}


def encode(values: dict[str, Any]) -> bytes:
    return json.dumps({"etmem": FORMAT, **values}, separators=(",", ":")).encode()


def decode(data: object) -> dict[str, Any] | None:
    """None for what is not etmem's."""
    try:
        text = bytes(data).decode() if isinstance(data, bytes | bytearray) else data
        value = json.loads(text) if isinstance(text, str) and text.startswith('{"etmem"') else None
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and value.pop("etmem", None) == FORMAT else None


def parse_memory(metadatas: Sequence[object]) -> dict[str, Any]:
    """``Inspector(delegate_metadata_parser=etmem.devtools.parse_memory)``.

    ``metadatas`` has one entry per inference. What is live is the largest of them, what was allocated and freed
    their sum; events that are not etmem's give nothing.
    """
    found = [value for data in metadatas if (value := decode(data)) is not None]
    return combined(found)


def combined(values: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The figures of several inferences as one, in the order of COLUMNS; texts are those of the first."""
    merged: dict[str, Any] = {}
    for name in dict.fromkeys(name for value in values for name in value):
        known = [value[name] for value in values if value.get(name) is not None]
        merged[name] = _one(name, known)
    return merged


def _one(name: str, known: Sequence[Any]) -> Any:
    numbers = [value for value in known if isinstance(value, int)]
    if name in LARGEST and numbers:
        return max(numbers)
    if name in SUMMED and numbers:
        return sum(numbers)
    return next(iter(known), None)


def columns(rows: Iterable[InstructionBytes]) -> dict[str, Any]:
    return combined([memory_of(row) for row in rows])
