"""What a file holds: flatbuffer, constants, named data, delegate blobs, and the padding between them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from etmem.planning.model import Contents, Part

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from etmem.program.model import DataSegment, ExternalData, Program

Loads = dict[str, tuple[str, ...]]
"""Key of named data -> the delegates that load it."""


def contents(program: Program, loads: Mapping[str, tuple[str, ...]]) -> Contents:
    """``loads`` says which delegates load which named data, as far as their blobs tell."""
    parts = [Part("program", "flatbuffer", _flatbuffer_bytes(program), 1, ())]
    used: set[int] = set()
    for kind, name, segments, users in _kinds(program):
        fresh = [segment for segment in dict.fromkeys(segments) if segment not in used]
        used.update(fresh)
        size = sum(program.segments[segment].bytes for segment in fresh)
        if fresh and (size or kind != "constants"):
            parts.append(Part(kind, name, size, len(fresh), users))
    for plan in program.plans:
        for index, delegate in enumerate(plan.delegates):
            if delegate.inline:
                size = program.inline_delegates[delegate.index].bytes
                users = (f"{plan.name}/{delegate.backend}[{index}]",)
                parts.append(Part("delegate_blob", delegate.backend, size, 1, users))
    return _whole(program.path, program.file_bytes, parts, tuple(_named(program, loads)))


def data_contents(data: ExternalData, loads: Mapping[str, tuple[str, ...]]) -> Contents:
    used = dict.fromkeys(entry.segment for entry in data.named_data)
    size = sum(data.segments[segment].bytes for segment in used)
    parts = [
        Part("program", "flatbuffer", data.header.program_bytes, 1, ()),
        Part("named_data", "external", size, len(data.named_data), ()),
    ]
    return _whole(data.path, data.file_bytes, parts, tuple(_named(data, loads)))


def _flatbuffer_bytes(program: Program) -> int:
    return program.header.program_bytes - sum(data.bytes for data in program.inline_delegates)


def _kinds(program: Program) -> Iterator[tuple[str, str, Iterable[int], tuple[str, ...]]]:
    if program.constant_segment is not None:
        yield "constants", "of operators", [program.constant_segment.segment], ()
    yield "initial_values", "of mutable buffers", [pieces.segment for pieces in program.mutable_segments], ()
    blobs: dict[tuple[str, int], list[str]] = defaultdict(list)
    for plan in program.plans:
        for index, delegate in enumerate(plan.delegates):
            if not delegate.inline:
                blobs[delegate.backend, delegate.index].append(f"{plan.name}/{delegate.backend}[{index}]")
    for (backend, segment), users in blobs.items():
        yield "delegate_blob", backend, [segment], tuple(users)
    yield "named_data", "of delegates", [entry.segment for entry in program.named_data], ()


def _named(file: Program | ExternalData, loads: Mapping[str, tuple[str, ...]]) -> Iterator[Part]:
    for entry in file.named_data:
        yield Part("named_data", entry.key, file.segments[entry.segment].bytes, 1, loads.get(entry.key, ()))


def _whole(path: str | None, size: int, parts: list[Part], named: tuple[Part, ...]) -> Contents:
    """With the rest as padding, so that the parts add up to the file."""
    rest = size - sum(part.bytes for part in parts)
    if rest > 0:
        parts.append(Part("padding", "alignment and headers", rest, 1, ()))
    return Contents(path, size, tuple(part for part in parts if part.bytes), named)


def segment_of(file: Program | ExternalData, key: str) -> DataSegment | None:
    """Where named data lies."""
    found = next((entry for entry in file.named_data if entry.key == key), None)
    return file.segments[found.segment] if found is not None else None
