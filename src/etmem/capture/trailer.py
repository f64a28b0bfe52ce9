"""Notes added to a raw trace when its process has ended: what only the launcher knows by then."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from etmem.trace import layout
from etmem.trace.layout import ChunkKind, MetaType

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_FIRST_STRING = 0xF0000000
"""The agent counts string ids up from 1 and never comes here."""

_CHUNKS, _STAMPS = 12, 13
"""Fields of the header, counted as ``layout.HEADER`` unpacks them."""


def append_notes(trace: Path, notes: Mapping[str, str]) -> None:
    """Add a chunk of notes behind the last chunk that was handed out. Raises OSError, the trace as it was.

    A killed process leaves space that it had allocated ahead; the chunk goes in front of that.
    """
    size = trace.stat().st_size
    try:
        _append(trace, notes)
    except OSError:
        os.truncate(trace, size)
        raise


def _append(trace: Path, notes: Mapping[str, str]) -> None:
    with trace.open("r+b", buffering=0) as file:
        header = list(layout.HEADER.unpack(file.read(layout.HEADER.size)))
        if header[0] != layout.MAGIC:
            return
        header_bytes, chunk_bytes, chunks, stamps = header[2], header[3], header[_CHUNKS], header[_STAMPS]
        chunk = _chunk(notes, chunks, stamps).ljust(chunk_bytes, b"\0")
        written = os.pwrite(file.fileno(), chunk, header_bytes + chunks * chunk_bytes)
        if written != len(chunk):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        # Only now does the chunk belong to the trace.
        header[_CHUNKS] = chunks + 1
        os.pwrite(file.fileno(), layout.HEADER.pack(*header), 0)


def _chunk(notes: Mapping[str, str], sequence: int, stamp: int) -> bytes:
    # Time 0: the stamp may be older than now (the header of a killed process lags), and must date no event.
    out = bytearray(layout.CHUNK.pack(layout.CHUNK_MAGIC, ChunkKind.META, 0, sequence, 0, stamp, 0, 0, 0, 0))
    identifier = _FIRST_STRING
    for key, value in notes.items():
        for text in (key.encode(), value.encode("utf-8", "surrogateescape")):
            out += _entry(MetaType.STRING, stamp, layout.STRING.pack(identifier, len(text)) + text)
            identifier += 1
        out += _entry(MetaType.NOTE, stamp, layout.NOTE.pack(identifier - 2, identifier - 1))
    return bytes(out)


def _entry(kind: MetaType, stamp: int, body: bytes) -> bytes:
    body += b"\0" * (-len(body) % 8)
    return layout.META.pack(kind, layout.META.size + len(body), stamp) + body
