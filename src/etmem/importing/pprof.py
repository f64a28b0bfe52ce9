"""pprof's profile.proto: gperftools, jemalloc's jeprof, Go's pprof, and Perfetto's traceconv write it.

Field numbers are those of github.com/google/pprof/proto/profile.proto.
"""

from __future__ import annotations

from etmem.importing.profile import Frame, HeapProfile, Module, Sample
from etmem.importing.wire import MalformedError, Message, signed

_LIVE_BYTES = ("inuse_space", "space", "inuse_bytes")
_LIVE_BLOCKS = ("inuse_objects", "objects")
_ALLOCATED_BYTES, _ALLOCATED_BLOCKS = ("alloc_space",), ("alloc_objects",)


class NoHeapProfileError(ValueError):
    """A profile of something else."""


def parse(data: bytes) -> HeapProfile:
    """Raises MalformedError and NoHeapProfileError."""
    message = Message(memoryview(data))
    strings = [bytes(block).decode("utf-8", "replace") for block in message.blocks(6)]
    if not strings or strings[0]:
        raise MalformedError("it has no string table")
    types = [_text(strings, kind.number(1)) for kind in message.messages(1)]
    live = _place(types, _LIVE_BYTES)
    if live is None:
        raise NoHeapProfileError(f"its samples are {', '.join(types) or 'of no type'}: none is live bytes")
    columns = (live, *(_place(types, names) for names in (_LIVE_BLOCKS, _ALLOCATED_BYTES, _ALLOCATED_BLOCKS)))
    frames = _frames(message, strings)
    return HeapProfile(
        format="pprof",
        interval_bytes=signed(message.number(12)),
        moment="when the profile was taken",
        samples=tuple(_sample(sample, frames, columns) for sample in message.messages(2)),
    )


def _place(types: list[str], names: tuple[str, ...]) -> int | None:
    return next((types.index(name) for name in names if name in types), None)


def _text(strings: list[str], index: int) -> str:
    if index >= len(strings):
        raise MalformedError("a string is not in the table")
    return strings[index]


def _frames(message: Message, strings: list[str]) -> dict[int, tuple[Frame, ...]]:
    """By location, its functions: several where calls were inlined, the innermost first."""
    functions = {function.number(1): _function(function, strings) for function in message.messages(5)}
    modules: dict[int, tuple[Module | None, int]] = {0: (None, 0)}
    for mapping in message.messages(3):
        named = Module(_text(strings, mapping.number(5)), _text(strings, mapping.number(6)))
        modules[mapping.number(1)] = (named, mapping.number(4) - mapping.number(2))
    found = {}
    for location in message.messages(4):
        module, shift = modules.get(location.number(2), (None, 0))
        address = location.number(3) + shift
        names = [functions.get(line.number(1), "") for line in location.messages(4)] or [""]
        found[location.number(1)] = tuple(Frame(module, address, in_file=True, name=name) for name in names)
    return found


def _function(function: Message, strings: list[str]) -> str:
    """The linker's name where there is one: descriptions know those."""
    return _text(strings, function.number(3)) or _text(strings, function.number(2))


def _sample(sample: Message, frames: dict[int, tuple[Frame, ...]], columns: tuple[int | None, ...]) -> Sample:
    values = [signed(value) for value in sample.numbers(2)]
    if any(column is not None and column >= len(values) for column in columns):
        raise MalformedError("a sample has too few values")
    stack = tuple(frame for location in sample.numbers(1) for frame in frames.get(location, ()))
    return Sample(stack, *(0 if column is None else values[column] for column in columns))
