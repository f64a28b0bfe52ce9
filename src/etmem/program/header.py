"""The extended headers of .pte and .ptd files: where the flatbuffer ends and the segments lie."""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import TYPE_CHECKING

from etmem.program.flatbuffer import MalformedError, Table
from etmem.program.model import DataSegment, Header

if TYPE_CHECKING:
    from collections.abc import Iterable

_OFFSET = 8
_PTE = struct.Struct("<4sIQQ")
_PTD = struct.Struct("<4sIQQQQ")
_SEGMENT_BYTES = struct.Struct("<Q")


def program_header(view: memoryview) -> Header:
    """The header of a .pte. Files of before segments have none: the flatbuffer is then the whole file."""
    identifier = bytes(view[4:8]).decode("ascii", "replace")
    if len(view) < _OFFSET + _PTE.size or bytes(view[_OFFSET : _OFFSET + 4]) != b"eh00":
        return Header(identifier, False, len(view), 0, 0)
    _, length, program_bytes, base = _PTE.unpack_from(view, _OFFSET)
    if length < _PTE.size:
        raise MalformedError(f"an extended header of {length} bytes")
    segment_bytes = 0
    if length >= _PTE.size + 8:
        place = _OFFSET + _PTE.size
        if place + 8 > len(view):
            raise MalformedError("the extended header is cut off")
        (segment_bytes,) = _SEGMENT_BYTES.unpack_from(view, place)
    return _checked(Header(identifier, True, program_bytes, base, segment_bytes), len(view))


def data_header(view: memoryview) -> Header:
    """The header of a .ptd. Its flatbuffer's offsets count from the start of the file as well."""
    identifier = bytes(view[4:8]).decode("ascii", "replace")
    if len(view) < _OFFSET + _PTD.size or bytes(view[_OFFSET : _OFFSET + 4]) != b"FH01":
        raise MalformedError("no extended header")
    _, length, start, size, base, segment_bytes = _PTD.unpack_from(view, _OFFSET)
    if length < _PTD.size - 8:
        raise MalformedError(f"an extended header of {length} bytes")
    return _checked(Header(identifier, True, start + size, base, segment_bytes), len(view))


def _checked(header: Header, file_bytes: int) -> Header:
    if header.program_bytes > file_bytes:
        raise MalformedError(f"cut off: the flatbuffer ends at byte {header.program_bytes:,}, there are {file_bytes:,}")
    if header.program_bytes < 8:
        raise MalformedError(f"a flatbuffer of {header.program_bytes} bytes")
    end = header.segment_base + header.segment_bytes
    if end > file_bytes:
        raise MalformedError(f"cut off: its segments end at byte {end:,}, there are {file_bytes:,}")
    return header


def segments(tables: Iterable[Table], header: Header, file_bytes: int) -> tuple[DataSegment, ...]:
    """The segment list, each within the file."""
    found: list[DataSegment] = []
    for table in tables:
        offset, size = table.integer("offset"), table.integer("size")
        place = header.segment_base + offset
        if place + size > file_bytes:
            raise MalformedError(
                f"cut off: segment {len(found)} ends at byte {place + size:,}, there are {file_bytes:,}"
            )
        found.append(DataSegment(offset, size, place))
    _apart(found, header)
    if header.segment_base == 0 and any(segment.bytes for segment in found):
        raise MalformedError("segments without a segment base in the header")
    return tuple(found)


def _apart(found: list[DataSegment], header: Header) -> None:
    """No byte of a file is in two segments: what is stored once for several users is one segment."""
    held = sorted((segment.file_offset, segment.bytes, index) for index, segment in enumerate(found) if segment.bytes)
    if held and held[0][0] < header.program_bytes:
        raise MalformedError(f"segment {held[0][2]} begins inside the flatbuffer")
    for (start, size, index), (after, _, other) in pairwise(held):
        if start + size > after:
            raise MalformedError(f"segments {index} and {other} overlap")
