"""Writing a flatbuffer front to back: a table, then what it refers to.

Offsets are unsigned and count from where they stand, so everything lies behind the first that refers to it;
layouts (vtables) are found by a signed offset and are written once.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

from etmem.program.schema import Schema

_NUMBERS = {"i32": "<i", "u32": "<I", "u64": "<Q"}


@dataclass(frozen=True)
class NewTable:
    """``None`` leaves a field out; numbers are always written, whatever the schema's default."""

    name: str
    values: Mapping[str, Value]


Value = int | str | bytes | NewTable | list[NewTable] | None


def size_prefixed(schema: Schema, root: NewTable, identifier: bytes) -> bytes:
    """A whole buffer with its size in front."""
    writer = _Writer(schema)
    writer.data += b"\0" * 8 + identifier
    writer.point(4, writer.table(root))
    writer.pad(8)
    struct.pack_into("<I", writer.data, 0, len(writer.data) - 4)
    return bytes(writer.data)


class _Writer:
    def __init__(self, schema: Schema) -> None:
        self.data = bytearray()
        self._schema = schema
        self._layouts: dict[bytes, int] = {}

    def pad(self, alignment: int) -> None:
        self.data += b"\0" * (-len(self.data) % alignment)

    def point(self, place: int, target: int) -> None:
        struct.pack_into("<I", self.data, place, target - place)

    def table(self, new: NewTable) -> int:
        """Writes a table and all that it refers to; returns its place."""
        fields = self._schema.tables[new.name]
        present = [(name, value) for name, value in new.values.items() if value is not None]
        # The widest first, behind the four bytes that lead to the layout: then no gaps are needed.
        present.sort(key=lambda field: -self._width(fields[field[0]][1]))
        offsets, size = {}, 4
        for name, _ in present:
            offsets[name] = size
            size += self._width(fields[name][1])
        layout = self._layout(len(fields), size, {fields[name][0]: offset for name, offset in offsets.items()})
        while (len(self.data) + 4) % 8:
            self.data.append(0)
        start = len(self.data)
        self.data += b"\0" * size
        struct.pack_into("<i", self.data, start, start - layout)
        for name, value in present:
            kind, place = fields[name][1], start + offsets[name]
            if isinstance(value, int):
                struct.pack_into(_NUMBERS[kind], self.data, place, value)
            else:
                self.point(place, self._referred(value))
        return start

    def _width(self, kind: str) -> int:
        return struct.calcsize(_NUMBERS.get(kind, "<I"))

    def _layout(self, slots: int, size: int, offsets: Mapping[int, int]) -> int:
        count = 2 + slots
        content = struct.pack(f"<{count}H", 2 * count, size, *(offsets.get(slot, 0) for slot in range(slots)))
        if content not in self._layouts:
            self.pad(2)
            self._layouts[content] = len(self.data)
            self.data += content
        return self._layouts[content]

    def _referred(self, value: Value) -> int:
        if isinstance(value, NewTable):
            return self.table(value)
        self.pad(4)
        start = len(self.data)
        if isinstance(value, str | bytes):
            content = value.encode() if isinstance(value, str) else value
            # Texts end in a zero that their length does not count.
            self.data += struct.pack("<I", len(content)) + content + b"\0" * isinstance(value, str)
            return start
        assert isinstance(value, list)
        self.data += struct.pack("<I", len(value)) + b"\0" * (4 * len(value))
        for index, entry in enumerate(value):
            self.point(start + 4 + 4 * index, self.table(entry))
        return start
