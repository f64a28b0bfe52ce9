"""What only the launcher knows when a process has ended, added to its raw trace: notes, and what sources read."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from etmem.model.words import Unit
from etmem.trace import layout
from etmem.trace.layout import ChunkKind, MetaType
from etmem.trace.tables import CounterUnit

if TYPE_CHECKING:
    from pathlib import Path

_FIRST_STRING = 0xF0000000
"""The agent counts string ids up from 1 and never comes here."""

_CHUNKS, _STAMPS = 12, 13
"""Fields of the header, counted as ``layout.HEADER`` unpacks them."""
_UNITS = {Unit.NUMBER: CounterUnit.NUMBER, Unit.BYTES: CounterUnit.BYTES}


@dataclass(frozen=True)
class Sample:
    """A value of a named series, from its time on."""

    time_ns: int
    """On CLOCK_MONOTONIC, as all times of a trace."""
    name: str
    unit: Unit
    value: int


def append_notes(trace: Path, notes: Mapping[str, str], samples: Sequence[Sample] = ()) -> None:
    """Add chunks behind the last chunk that was handed out. Raises OSError, the trace as it was.

    A killed process leaves space that it had allocated ahead; the chunks go in front of that. Samples have the last
    stamp of the trace: when they were taken is told by their time.
    """
    size = trace.stat().st_size
    try:
        _append(trace, notes, samples)
    except OSError:
        os.truncate(trace, size)
        raise


def _append(trace: Path, notes: Mapping[str, str], samples: Sequence[Sample]) -> None:
    with trace.open("r+b", buffering=0) as file:
        header = list(layout.HEADER.unpack(file.read(layout.HEADER.size)))
        if header[0] != layout.MAGIC:
            return
        header_bytes, chunk_bytes, chunks, stamps = header[2], header[3], header[_CHUNKS], header[_STAMPS]
        for body in _bodies(_entries(notes, samples, stamps), chunk_bytes - layout.CHUNK.size):
            # Time 0: the stamp may be older than now (the header of a killed process lags), and must date no event.
            kind = (layout.CHUNK_MAGIC, ChunkKind.META, 0, chunks, 0, stamps, 0, 0, 0, 0)
            chunk = (layout.CHUNK.pack(*kind) + body).ljust(chunk_bytes, b"\0")
            written = os.pwrite(file.fileno(), chunk, header_bytes + chunks * chunk_bytes)
            if written != len(chunk):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            chunks += 1
        # Only now do the chunks belong to the trace.
        header[_CHUNKS] = chunks
        os.pwrite(file.fileno(), layout.HEADER.pack(*header), 0)


def _entries(notes: Mapping[str, str], samples: Sequence[Sample], stamp: int) -> Iterator[bytes]:
    texts = [text for pair in notes.items() for text in pair] + [sample.name for sample in samples]
    strings = {text: _FIRST_STRING + place for place, text in enumerate(dict.fromkeys(texts))}
    for text, number in strings.items():
        data = text.encode("utf-8", "surrogateescape")
        yield _entry(MetaType.STRING, stamp, layout.STRING.pack(number, len(data)) + data)
    for key, value in notes.items():
        yield _entry(MetaType.NOTE, stamp, layout.NOTE.pack(strings[key], strings[value]))
    for sample in samples:
        unit = _UNITS[sample.unit]
        record = layout.COUNTER.pack(strings[sample.name], unit, 0, 0, sample.value, sample.time_ns)
        yield _entry(MetaType.COUNTER, stamp, record)


def _bodies(entries: Iterator[bytes], room: int) -> Iterator[bytes]:
    """The entries in as many chunks as they need: none may cross from one into the next."""
    body = bytearray()
    for entry in entries:
        if len(body) + len(entry) > room:
            yield bytes(body)
            body.clear()
        body += entry
    yield bytes(body)


def _entry(kind: MetaType, stamp: int, body: bytes) -> bytes:
    body += b"\0" * (-len(body) % 8)
    return layout.META.pack(kind, layout.META.size + len(body), stamp) + body
