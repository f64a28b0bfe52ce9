"""Columns of events as compressed bytes.

A column is its bytes transposed (all first bytes, then all second bytes...), because the high bytes of
neighbours are alike; stamps and addresses are differences before that, zigzagged so that small steps back are
small numbers. zstd does the rest, with a checksum.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from etmem.trace.meta import damaged
from etmem.trace.model import KNOWN_KINDS
from etmem.trace.native import passes
from etmem.trace.passes import Column

DTYPES: dict[str, Any] = {
    "stamp": np.uint64,
    "kind": np.uint8,
    "flags": np.uint8,
    "address": np.uint64,
    "size": np.uint64,
    "scope": np.uint32,
    "stack": np.uint32,
    "thread": np.uint32,
}
_AS_STEPS = ("stamp", "address")
_LEVEL = 3


def encode(name: str, column: Column) -> bytes:
    """The compressed bytes of one column."""
    column = np.ascontiguousarray(column, DTYPES[name])
    if name in _AS_STEPS:
        steps = column.copy()
        steps[1:] -= column[:-1]
        column = _zigzag(steps)
    little = column.astype(column.dtype.newbyteorder("<"), copy=False)
    planes = little.view(np.uint8).reshape(len(column), column.itemsize).T
    return compress(planes.tobytes())


def decode(name: str, packed: bytes, rows: int) -> Column:
    """The inverse; TraceError where the bytes are not ``rows`` of such a column."""
    width = np.dtype(DTYPES[name]).itemsize
    planes = np.frombuffer(decompress(packed, rows * width), np.uint8).reshape(width, rows)
    column = passes().numbers(planes, np.dtype(DTYPES[name]), steps=name in _AS_STEPS)
    if name == "stamp" and not (column[1:] > column[:-1]).all():
        raise damaged("its events are not in order")
    if name == "kind" and not KNOWN_KINDS[column].all():
        raise damaged("an event of unknown kind")
    return column


def compress(data: bytes) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True).compress(data)


def decompress(packed: bytes, size: int) -> bytes:
    """Exactly ``size`` bytes; the size is checked before memory is taken for it."""
    import zstandard

    try:
        if zstandard.frame_content_size(packed) != size:
            raise damaged("a packed part is not of its size")
        data: bytes = zstandard.ZstdDecompressor().decompress(packed)
    except zstandard.ZstdError:
        raise damaged("a packed part cannot be unpacked") from None
    if len(data) != size:
        raise damaged("a packed part is not of its size")
    return data


def _zigzag(steps: Column) -> Column:
    signed = steps.view(np.int64)
    return ((signed << 1) ^ (signed >> 63)).view(np.uint64)
