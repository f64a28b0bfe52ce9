"""Bounds-checked reading of flatbuffers.

Every offset is checked before it is followed and every vector before it is walked, and the elements that
one buffer may yield are limited by its size: a corrupted file ends in a ``MalformedError``, never in a crash, a
hang or a huge allocation. Scalars have the schema's defaults, which are 0 in all of ExecuTorch's.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from etmem.program.schema import PROGRAM

if TYPE_CHECKING:
    from collections.abc import Iterator

    from etmem.program.schema import Schema

_U16 = struct.Struct("<H")
_U32 = struct.Struct("<I")
_I32 = struct.Struct("<i")
_SCALARS = {
    "bool": struct.Struct("<?"),
    "i8": struct.Struct("<b"),
    "u8": struct.Struct("<B"),
    "i16": struct.Struct("<h"),
    "i32": struct.Struct("<i"),
    "u32": struct.Struct("<I"),
    "i64": struct.Struct("<q"),
    "u64": struct.Struct("<Q"),
    "f32": struct.Struct("<f"),
    "f64": struct.Struct("<d"),
}
_MAX_ELEMENTS = 50_000_000


class MalformedError(Exception):
    """The bytes are not a flatbuffer of the expected schema."""


class Buffer:
    """One flatbuffer: ``view`` from its root offset to its last byte."""

    def __init__(self, view: memoryview, schema: Schema = PROGRAM) -> None:
        self.view = view
        self.schema = schema
        self.size = len(view)
        self._left = min(2 * self.size + 1024, _MAX_ELEMENTS)
        self._vtables: dict[int, tuple[int, ...]] = {}

    def root(self, table: str) -> Table:
        return self.table_at(self.follow(0), table)

    def follow(self, position: int) -> int:
        """The target of the forward offset at ``position``."""
        self.check(position, 4)
        target = position + int(_U32.unpack_from(self.view, position)[0])
        if target == position:
            raise MalformedError(f"null offset at {position}")
        self.check(target, 4)
        return target

    def check(self, position: int, count: int) -> None:
        if position < 0 or position + count > self.size:
            raise MalformedError(f"offset {position} + {count} is beyond the end ({self.size})")

    def spend(self, elements: int) -> None:
        self._left -= elements
        if self._left < 0:
            raise MalformedError("more elements than the file can hold")

    def table_at(self, position: int, name: str) -> Table:
        self.check(position, 4)
        vtable = position - int(_I32.unpack_from(self.view, position)[0])
        slots = self._vtables.get(vtable)
        if slots is None:
            slots = self._vtables[vtable] = self._read_vtable(vtable)
        return Table(self, position, slots, name)

    def _read_vtable(self, position: int) -> tuple[int, ...]:
        self.check(position, 4)
        (length,) = _U16.unpack_from(self.view, position)
        if length < 4 or length % 2:
            raise MalformedError(f"a table layout of {length} bytes at {position}")
        self.check(position, length)
        return struct.unpack_from(f"<{length // 2 - 2}H", self.view, position + 4)

    def vector(self, position: int, width: int) -> tuple[int, int]:
        """(first byte, count) of the vector at ``position``, whose elements are ``width`` bytes."""
        self.check(position, 4)
        count = int(_U32.unpack_from(self.view, position)[0])
        self.check(position + 4, count * width)
        return position + 4, count


class Table:
    """One table. Accessors name the field and answer the default where the file leaves it out."""

    __slots__ = ("buffer", "fields", "name", "position", "slots")

    def __init__(self, buffer: Buffer, position: int, slots: tuple[int, ...], name: str) -> None:
        self.buffer = buffer
        self.position = position
        self.slots = slots
        self.name = name
        self.fields = buffer.schema.tables[name]

    def _place(self, slot: int) -> int | None:
        offset = self.slots[slot] if slot < len(self.slots) else 0
        return self.position + offset if offset else None

    def _scalar(self, field: str) -> int | float | bool:
        slot, kind = self.fields[field]
        place = self._place(slot)
        if place is None:
            return 0
        reader = _SCALARS[kind]
        self.buffer.check(place, reader.size)
        value: int | float | bool = reader.unpack_from(self.buffer.view, place)[0]
        return value

    def integer(self, field: str) -> int:
        return int(self._scalar(field))

    def boolean(self, field: str) -> bool:
        return bool(self._scalar(field))

    def real(self, field: str) -> float:
        return float(self._scalar(field))

    def text(self, field: str) -> str | None:
        place = self._place(self.fields[field][0])
        if place is None:
            return None
        start, count = self.buffer.vector(self.buffer.follow(place), 1)
        self.buffer.spend(count)
        try:
            return str(self.buffer.view[start : start + count], "utf-8")
        except UnicodeDecodeError as error:
            raise MalformedError(f"{self.name}.{field} is not UTF-8 text") from error

    def required_text(self, field: str) -> str:
        text = self.text(field)
        if text is None:
            raise MalformedError(f"{self.name} has no {field}")
        return text

    def numbers(self, field: str) -> tuple[int, ...]:
        """A vector of integers; empty where the file leaves it out."""
        return self._numbers(field)

    def reals(self, field: str) -> tuple[float, ...]:
        return self._numbers(field)

    def _numbers(self, field: str) -> tuple[int, ...]:
        slot, kind = self.fields[field]
        place = self._place(slot)
        if place is None:
            return ()
        reader = _SCALARS[kind[1:-1]]
        start, count = self.buffer.vector(self.buffer.follow(place), reader.size)
        self.buffer.spend(count)
        return struct.unpack_from(f"<{count}{reader.format[1:]}", self.buffer.view, start)

    def data(self, field: str) -> tuple[int, int]:
        """(first byte, count) of a vector of bytes, unread; (0, 0) where the file leaves it out."""
        place = self._place(self.fields[field][0])
        return (0, 0) if place is None else self.buffer.vector(self.buffer.follow(place), 1)

    def table(self, field: str) -> Table | None:
        slot, kind = self.fields[field]
        place = self._place(slot)
        return None if place is None else self.buffer.table_at(self.buffer.follow(place), kind)

    def has(self, field: str) -> bool:
        return self._place(self.fields[field][0]) is not None

    def tables(self, field: str) -> Iterator[Table]:
        slot, kind = self.fields[field]
        place = self._place(slot)
        if place is None:
            return
        start, count = self.buffer.vector(self.buffer.follow(place), 4)
        self.buffer.spend(count)
        for position in range(start, start + 4 * count, 4):
            yield self.buffer.table_at(self.buffer.follow(position), kind[1:-1])

    def union(self, field: str) -> tuple[int, Table]:
        """(type number, value) of a union. One that is empty or of an unknown type is malformed."""
        slot, kind = self.fields[field]
        members = self.buffer.schema.unions[kind[1:]]
        place = self._place(slot - 1)
        number = 0
        if place is not None:
            self.buffer.check(place, 1)
            number = self.buffer.view[place]
        if not 1 <= number <= len(members):
            raise MalformedError(f"{self.name}.{field} has unknown type {number}")
        value = self._place(slot)
        if value is None:
            raise MalformedError(f"{self.name}.{field} has no value")
        return number, self.buffer.table_at(self.buffer.follow(value), members[number - 1])
