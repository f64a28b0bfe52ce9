"""Reads a packed trace, as ``pack`` writes it.

    Prelude, the raw trace's header, then parts in any order, then the index of all parts

A part is a zstd frame with a checksum: the chunks' (stamp, time_ns) pairs, the payload of one chunk of side
tables, or one column of one block of events. Blocks follow each other in stamp order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from struct import Struct
from typing import Any

import numpy as np
import numpy.typing as npt

from etmem.model.errors import TraceError
from etmem.trace import layout
from etmem.trace.columns import DTYPES, decode, decompress
from etmem.trace.events import LazyEvents
from etmem.trace.header import read_header
from etmem.trace.meta import Entries, damaged, read_chunk
from etmem.trace.passes import Column
from etmem.trace.rows import assemble
from etmem.trace.tables import Events, Trace

MAGIC = b"ETMEMTZ\1"
VERSION = 1
BLOCK_ROWS = 1 << 20

PRELUDE = Struct("<8s2I5Q")
"""Magic, version, truncated, dropped events, events, parts, the index's offset and size in the file."""
PART = Struct("<2I4Q")
"""Kind, column, offset and size in the file, unpacked size, rows (of a column)."""

_MAX_PARTS = 1 << 24
_MAX_UNPACKED = 1 << 31


class PartKind(IntEnum):
    POINTS = 1
    META = 2
    TORN_META = 3
    COLUMN = 4


@dataclass(frozen=True)
class Part:
    kind: PartKind
    column: int
    offset: int
    packed_bytes: int
    bytes: int
    rows: int = 0


Block = dict[str, Part]


class PackedEvents(LazyEvents):
    """Events that are unpacked block by block, or column by column when one is asked for."""

    def __init__(self, data: npt.NDArray[np.uint8], blocks: list[Block]) -> None:
        super().__init__(sum(block["stamp"].rows for block in blocks))
        object.__setattr__(self, "_data", data)
        object.__setattr__(self, "_blocks", blocks)

    def make(self, name: str) -> Column:
        column = np.empty(len(self), DTYPES[name])
        at = 0
        for block in self.__dict__["_blocks"]:
            column[at : at + block[name].rows] = _column(self.__dict__["_data"], name, block[name])
            at += block[name].rows
        return column

    def batches(self, rows: int = BLOCK_ROWS) -> Iterator[Events]:
        blocks = self.__dict__["_blocks"]
        batches = iter((self,)) if len(blocks) == 1 else self._unpacked_ahead(blocks)
        for batch in batches:
            yield from (batch,) if rows >= BLOCK_ROWS else Events.batches(batch, rows)

    def _unpacked_ahead(self, blocks: list[Block]) -> Iterator[Events]:
        """While one block is looked at, the next is unpacked: each is half of what a long trace takes to read."""
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(1) as ahead:
            unpacked = [ahead.submit(self._unpacked, block) for block in blocks[:1]]
            for block in blocks[1:]:
                batch = unpacked.pop().result()
                unpacked.append(ahead.submit(self._unpacked, block))
                yield batch
            for last in unpacked:
                yield last.result()

    def _unpacked(self, block: Block) -> Events:
        return Events(**{name: _column(self.__dict__["_data"], name, block[name]) for name in DTYPES})


def is_packed(data: npt.NDArray[np.uint8]) -> bool:
    return bytes(data[: len(MAGIC)]) == MAGIC


def parse(data: npt.NDArray[np.uint8]) -> Trace:
    """The trace in the bytes of a packed one."""
    if len(data) < PRELUDE.size + layout.HEADER.size:
        raise damaged("it is cut off in its header")
    _, version, truncated, dropped, events, count, offset, size = PRELUDE.unpack_from(data.data)
    if version != VERSION:
        raise TraceError(
            f"version {version} of the packed trace format; this etmem reads version {VERSION}",
            "read it with the etmem that packed it, or a newer one",
        )
    if truncated > 1:
        raise damaged("its prelude is not one")
    raw = read_header(data[PRELUDE.size :])
    header = replace(raw.public, truncated=bool(truncated), dropped_events=dropped)
    parts = _parts(data, count, offset, size)
    entries = Entries()
    points: list[tuple[int, int]] = []
    for part in parts:
        if part.kind is PartKind.POINTS:
            pairs = np.frombuffer(_unpack(data, part), "<u8").reshape(-1, 2)
            points += [(stamp, time_ns) for stamp, time_ns in pairs.tolist()]
        elif part.kind is not PartKind.COLUMN:
            read_chunk(memoryview(_unpack(data, part)), entries, part.kind is PartKind.META)
    blocks = _blocks([part for part in parts if part.kind is PartKind.COLUMN])
    stored = PackedEvents(data, blocks)
    if len(stored) != events:
        raise damaged(f"{len(stored)} events where {events} are promised")
    return assemble(header, entries, points, stored)


def _parts(data: npt.NDArray[np.uint8], count: int, offset: int, size: int) -> list[Part]:
    if count > _MAX_PARTS or offset + size > len(data):
        raise TraceError("the packed trace is cut off", "copy it again; its raw trace, if kept, is whole")
    index = decompress(bytes(data[offset : offset + size]), count * PART.size)
    return [_part(fields, len(data)) for fields in PART.iter_unpack(index)]


def _part(numbers: tuple[Any, ...], end: int) -> Part:
    try:
        part = Part(PartKind(numbers[0]), *numbers[1:])
    except ValueError:
        raise damaged(f"a part of unknown kind {numbers[0]}") from None
    if part.offset + part.packed_bytes > end or part.bytes > _MAX_UNPACKED or part.rows > BLOCK_ROWS:
        raise damaged("a part that is not in the file")
    if part.kind is PartKind.POINTS and part.bytes % 16:
        raise damaged("half a point of the clock")
    return part


def _blocks(parts: list[Part]) -> list[Block]:
    names = tuple(DTYPES)
    if len(parts) % len(names):
        raise damaged("a block of events without all of its columns")
    blocks = []
    for at in range(0, len(parts), len(names)):
        block = dict(zip(names, parts[at : at + len(names)], strict=True))
        if any(part.column != index or part.rows != block["stamp"].rows for index, part in enumerate(block.values())):
            raise damaged("a block of events with columns of different lengths")
        blocks.append(block)
    return blocks


def _column(data: npt.NDArray[np.uint8], name: str, part: Part) -> Column:
    return decode(name, bytes(data[part.offset : part.offset + part.packed_bytes]), part.rows)


def _unpack(data: npt.NDArray[np.uint8], part: Part) -> bytes:
    return decompress(bytes(data[part.offset : part.offset + part.packed_bytes]), part.bytes)
