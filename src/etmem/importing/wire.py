"""Reading protocol buffer messages: fields by number, every length checked. ``report.protobuf`` writes them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED = {_FIXED64: 8, _FIXED32: 4}
_LONGEST_VARINT = 10


class MalformedError(ValueError):
    """The bytes are no message."""


class Message:
    """The fields of one message, in order. A field that is not there is 0, empty, or no message."""

    def __init__(self, data: memoryview) -> None:
        self._fields: dict[int, list[int | memoryview]] = defaultdict(list)
        for field, value in fields(data):
            self._fields[field].append(value)

    def number(self, field: int) -> int:
        value = self._fields[field][-1] if self._fields[field] else 0
        if not isinstance(value, int):
            raise MalformedError(f"field {field} is no number")
        return value

    def data(self, field: int) -> bytes:
        value = self._fields[field][-1] if self._fields[field] else b""
        if isinstance(value, int):
            raise MalformedError(f"field {field} is a number")
        return bytes(value)

    def text(self, field: int) -> str:
        return self.data(field).decode("utf-8", "replace")

    def messages(self, field: int) -> Iterator[Message]:
        for value in self._fields[field]:
            if isinstance(value, int):
                raise MalformedError(f"field {field} is no message")
            yield Message(value)

    def blocks(self, field: int) -> Iterator[memoryview]:
        """The same, not looked into."""
        return (value for value in self._fields[field] if not isinstance(value, int))

    def numbers(self, field: int) -> list[int]:
        """A repeated number, packed or not."""
        found: list[int] = []
        for value in self._fields[field]:
            if isinstance(value, int):
                found.append(value)
                continue
            at = 0
            while at < len(value):
                number, at = _varint(value, at)
                found.append(number)
        return found

    def has(self, field: int) -> bool:
        return bool(self._fields[field])


def fields(data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """(number, value) of each. Raises MalformedError."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        field, kind = key >> 3, key & 7
        if field == 0:
            raise MalformedError("a field has the number 0")
        if kind == _VARINT:
            value, at = _varint(data, at)
            yield field, value
            continue
        if kind == _BYTES:
            size, at = _varint(data, at)
        elif kind in _FIXED:
            size = _FIXED[kind]
        else:
            raise MalformedError(f"field {field} is of no known kind")
        if at + size > len(data):
            raise MalformedError(f"field {field} is longer than what it is in")
        piece = data[at : at + size]
        yield field, piece if kind == _BYTES else int.from_bytes(piece, "little")
        at += size


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = 0
    for place in range(_LONGEST_VARINT):
        if at + place >= len(data):
            raise MalformedError("a number ends with the file")
        byte = data[at + place]
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value & (1 << 64) - 1, at + place + 1
    raise MalformedError("a number is longer than 64 bits")


def signed(value: int) -> int:
    """A number that may be negative, from 64 bits of two's complement."""
    return value - (1 << 64) if value >= 1 << 63 else value
