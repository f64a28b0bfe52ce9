"""Protocol buffer messages on the wire: as much as Perfetto's and pprof's traces need.

field    = key value              key = number << 3 | kind, as a varint
varint   = seven bits a byte, lowest first; the top bit says that more follow
bytes    = length, as a varint, and the bytes (strings, messages, packed numbers)
"""

from __future__ import annotations

from collections.abc import Iterable

_VARINT, _BYTES = 0, 2


def varint(value: int) -> bytes:
    """Negative numbers as 64 bits of two's complement."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field: int, value: int) -> bytes:
    """An integer, boolean or enum; zero is left out, which is what absent means."""
    return varint(field << 3 | _VARINT) + varint(value) if value else b""


def present(field: int, value: int) -> bytes:
    """The same for a field in which zero says something."""
    return varint(field << 3 | _VARINT) + varint(value)


def block(field: int, content: bytes) -> bytes:
    """A message or bytes."""
    return varint(field << 3 | _BYTES) + varint(len(content)) + content


def text(field: int, content: str) -> bytes:
    # A path that is not valid UTF-8 holds surrogates, which no string field may.
    return block(field, content.encode("utf-8", "replace"))


def packed(field: int, values: Iterable[int]) -> bytes:
    return block(field, b"".join(map(varint, values)))
