"""Equal pieces of a file: what is stored more than once."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from etmem.program.file import Read
    from etmem.program.model import Program

_LEAST_BYTES = 4096
_SAMPLE_BYTES = 64
_SAMPLES = 16
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class Duplicate:
    bytes: int
    names: tuple[str, ...]
    """Where it is stored."""


def duplicates(program: Program, read: Read) -> tuple[Duplicate, ...]:
    """Largest first. Only pieces of one size whose samples agree are read whole."""
    sizes: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for name, start, size in _pieces(program):
        if size >= _LEAST_BYTES:
            sizes[size].append((name, start))
    groups: dict[tuple[int, bytes], list[tuple[str, int]]] = defaultdict(list)
    for size, places in sizes.items():
        for place in places if len(places) > 1 else ():
            groups[size, _sample(read, place[1], size)].append(place)
    found = [
        Duplicate(size, names)
        for (size, _), places in groups.items()
        if len(places) > 1
        for names in _equal(read, places, size)
    ]
    return tuple(sorted(found, key=lambda group: (-group.bytes, group.names)))


def _pieces(program: Program) -> Iterator[tuple[str, int, int]]:
    """(name, file offset, bytes) of constants, named data and blobs, each place once."""
    seen: set[int] = set()
    constants = program.constant_segment
    if constants is not None:
        segment = program.segments[constants.segment]
        edges = sorted({*constants.offsets[1:], segment.bytes})
        seen.add(segment.file_offset)
        for start, end in pairwise(edges):
            yield f"constant at {segment.file_offset + start:,}", segment.file_offset + start, end - start
    for index, data in enumerate(program.inline_constants):
        yield f"constant {index}", data.file_offset, data.bytes
    named = [(entry.key, program.segments[entry.segment]) for entry in program.named_data]
    blobs = [
        (f"{plan.name}/{delegate.backend}[{index}]", program.segments[delegate.index])
        for plan in program.plans
        for index, delegate in enumerate(plan.delegates)
        if not delegate.inline
    ]
    for name, segment in (*named, *blobs):
        if segment.file_offset not in seen:
            seen.add(segment.file_offset)
            yield name, segment.file_offset, segment.bytes


def _sample(read: Read, start: int, size: int) -> bytes:
    step = max(1, (size - _SAMPLE_BYTES) // _SAMPLES)
    return b"".join(read(start + offset, _SAMPLE_BYTES) for offset in range(0, size - _SAMPLE_BYTES, step))


def _equal(read: Read, places: list[tuple[str, int]], size: int) -> Iterator[tuple[str, ...]]:
    """Names of places that hold the same, in groups. Zeros are no data worth sharing."""
    left = list(places)
    while left:
        name, start = left.pop(0)
        same = [entry for entry in left if _is_same(read, start, entry[1], size)]
        left = [entry for entry in left if entry not in same]
        if same and not _is_zero(read, start, size):
            yield (name, *(other for other, _ in same))


def _is_same(read: Read, one: int, other: int, size: int) -> bool:
    return all(read(one + place, count) == read(other + place, count) for place, count in _chunks(size))


def _is_zero(read: Read, start: int, size: int) -> bool:
    return all(not any(read(start + place, count)) for place, count in _chunks(size))


def _chunks(size: int) -> Iterator[tuple[int, int]]:
    for place in range(0, size, _CHUNK_BYTES):
        yield place, min(_CHUNK_BYTES, size - place)
