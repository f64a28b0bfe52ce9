"""Programs that lie, each made from one that does not by changing a few bytes."""

from __future__ import annotations

import struct
from collections.abc import Callable

from etmem.program import read_bytes
from etmem.program.flatbuffer import Buffer, Table

Lie = Callable[[bytes], bytes]


def root(data: bytes) -> Table:
    return Buffer(memoryview(data)[: read_bytes(data).header.program_bytes]).root("Program")


def first(table: Table, *fields: str) -> Table:
    """The first element of a vector of tables in the first element of another, and so on."""
    for field in fields:
        table = next(table.tables(field))
    return table


def vector(table: Table, field: str) -> int:
    """Where the length of a vector stands."""
    return table.buffer.follow(scalar(table, field))


def scalar(table: Table, field: str) -> int:
    """Where a number of a table stands."""
    place = table._place(table.fields[field][0])
    assert place is not None
    return place


def patched(data: bytes, place: int, kind: str, value: int) -> bytes:
    found = bytearray(data)
    struct.pack_into(kind, found, place, value)
    return bytes(found)


def endless(*fields: str) -> Lie:
    """A vector that says it has 2**32 - 1 elements."""

    def lie(data: bytes) -> bytes:
        *path, last = fields
        return patched(data, vector(first(root(data), *path), last), "<I", 0xFFFFFFFF)

    return lie


def element(index: int, value: int, kind: str, *fields: str) -> Lie:
    """One number of a vector becomes another."""

    def lie(data: bytes) -> bytes:
        *path, last = fields
        place = vector(first(root(data), *path), last) + 4 + index * struct.calcsize(kind)
        return patched(data, place, kind, value)

    return lie


def back_to_itself(data: bytes) -> bytes:
    """The list of methods holds the program itself: a circle."""
    place = vector(root(data), "execution_plan") + 4
    return patched(data, place, "<I", (root(data).position - place) % 2**32)


def segment_beyond_the_end(data: bytes) -> bytes:
    return patched(data, 24, "<Q", len(data) + 4096)


LIES: dict[str, Lie] = {
    "endless_methods": endless("execution_plan"),
    "endless_values": endless("execution_plan", "values"),
    "endless_instructions": endless("execution_plan", "chains", "instructions"),
    "endless_operators": endless("execution_plan", "operators"),
    "huge_buffer": element(1, 2**62, "<q", "execution_plan", "non_const_buffer_sizes"),
    "no_such_input": element(0, 2**31 - 1, "<i", "execution_plan", "inputs"),
    "circle": back_to_itself,
    "segments_beyond_the_end": segment_beyond_the_end,
    "flatbuffer_beyond_the_end": lambda data: patched(data, 16, "<Q", 2**63),
    "newer": lambda data: data[:4] + b"ET13" + data[8:],
    "cut_off": lambda data: data[: len(data) // 2],
}
"""Name -> what makes the lie of an honest program."""
