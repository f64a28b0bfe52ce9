"""Reads a trace: checks the header, walks the chunks, and hands their contents to the tables.

What a killed process leaves behind is read as it is; a file that was cut gives what is whole in it and says
so (``Header.truncated``). Anything else that is wrong is a TraceError.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from etmem.model.errors import TraceError
from etmem.trace import layout, packed
from etmem.trace.events import StoredEvents, sort
from etmem.trace.header import RawHeader, read_header
from etmem.trace.layout import ChunkKind
from etmem.trace.meta import Entries, damaged, read_chunk
from etmem.trace.native import passes
from etmem.trace.passes import Spans
from etmem.trace.rows import MAX_SCOPE, assemble, is_whole
from etmem.trace.tables import Header, Trace

_MAX_SLOTS = 1 << 32
"""An event's place in the file is kept in 32 bits: 128 GiB of trace."""


@dataclass(frozen=True)
class Contents:
    """A raw trace, walked: what both the reader and ``pack`` start from."""

    header: Header
    entries: Entries
    points: list[tuple[int, int]]
    """(stamp, time_ns) of each chunk."""
    records: npt.NDArray[np.void]
    spans: Spans
    meta_chunks: list[tuple[npt.NDArray[np.uint8], bool]]
    """Payload of each chunk of side tables, and whether it is all there."""


def read(path: Path) -> Trace:
    """The trace in a file, raw or packed. Raises TraceError; the file stays mapped while the Trace lives."""
    data = open_mapped(path)
    try:
        return packed.parse(data) if packed.is_packed(data) else parse(data)
    except TraceError as error:
        raise TraceError(f"{path}: {error.message}", error.hint) from None


def open_mapped(path: Path) -> npt.NDArray[np.uint8]:
    """The bytes of a file, mapped."""
    try:
        if path.stat().st_size == 0:
            raise TraceError(f"{path}: the trace is empty", "the process ended before recording began: see its log")
        return np.memmap(path, np.uint8, "r")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise TraceError(f"{path}: cannot read the trace: {reason}", "check the path and its permissions") from None


def parse(data: Any) -> Trace:
    """The trace in a buffer (bytes, or an array of bytes): a raw one."""
    contents = walk(np.frombuffer(data, np.uint8))
    return assemble(contents.header, contents.entries, contents.points, order_events(contents))


def order_events(contents: Contents) -> StoredEvents:
    """The events of a walked trace, checked and in order."""
    native = passes()
    survey = native.survey(contents.records, contents.spans)
    if survey.unknown_scopes and is_whole(contents.header):
        raise damaged(f"{survey.unknown_scopes} events are in scopes that nothing defines")
    order = sort(contents.records, contents.spans, survey, native)
    return StoredEvents(contents.records, order, contents.spans, native)


def walk(data: npt.NDArray[np.uint8]) -> Contents:
    """Reads the header and the side tables, and finds where the events are."""
    raw = read_header(data)
    payload = data[raw.header_bytes :]
    chunks = -(-len(payload) // raw.chunk_bytes)
    if len(payload) // layout.EVENT_DTYPE.itemsize >= _MAX_SLOTS:
        raise TraceError("the trace is larger than 128 GiB", "record a shorter run")
    truncated = raw.chunks > chunks or (len(payload) % raw.chunk_bytes != 0)
    entries = Entries()
    points: list[tuple[int, int]] = []
    spans: dict[int, tuple[int, int]] = {}
    moving: list[tuple[int, int]] = []
    metas: dict[int, tuple[npt.NDArray[np.uint8], bool]] = {}
    threads = np.zeros(chunks, np.uint32)
    slots = raw.chunk_bytes // layout.EVENT_DTYPE.itemsize
    for index in _handed_out(payload, raw.chunk_bytes):
        chunk = payload[index * raw.chunk_bytes : (index + 1) * raw.chunk_bytes]
        head = _chunk_header(chunk, index)
        if head is None:
            continue
        kind, threads[index], point, copying = head
        points.append(point)
        if copying:
            moving.append((index, copying - 1))
        if kind is ChunkKind.EVENTS:
            spans[index] = (index * slots + layout.CHUNK.size // 32, index * slots + len(chunk) // 32)
        else:
            metas[index] = (chunk[layout.CHUNK.size :], len(chunk) == raw.chunk_bytes)
    for index, copy in moving:
        if index in metas:
            _drop_copy(metas, index, copy)
    for payload_of_chunk, complete in metas.values():
        read_chunk(payload_of_chunk.data, entries, complete)
    records = payload[: len(payload) // 32 * 32].view(layout.EVENT_DTYPE)
    for index, copy in moving:
        if index in spans:
            spans[index] = _left_behind(records, spans, index, copy, threads)
    bounds = np.array(list(spans.values()), np.uint64).reshape(-1, 2)
    first, last = (np.ascontiguousarray(bounds[:, side]) for side in (0, 1))
    contents = Contents(
        header=replace(raw.public, truncated=truncated),
        entries=entries,
        points=points,
        records=records,
        spans=Spans(first, last, threads, slots, _known_scopes(entries)),
        meta_chunks=list(metas.values()),
    )
    return replace(contents, header=_count_lost(contents, raw)) if truncated else contents


def _handed_out(payload: npt.NDArray[np.uint8], chunk_bytes: int) -> list[int]:
    """The chunks with a magic: of a file that was allocated far ahead few, and no loop goes over the others."""
    whole = len(payload) // chunk_bytes
    magic = payload[: whole * chunk_bytes].reshape(whole, chunk_bytes)[:, :4].any(axis=1)
    return [*np.flatnonzero(magic).tolist(), *range(whole, -(-len(payload) // chunk_bytes))]


def _drop_copy(metas: dict[int, tuple[npt.NDArray[np.uint8], bool]], index: int, copy: int) -> None:
    """Side tables that the process died moving: until they are emptied, what was written of the copy is none."""
    if copy == index or (copy < index and copy in metas):
        raise damaged(f"chunk {index} was being moved to chunk {copy}, which was there before")
    payload, _ = metas[index]
    if payload[:4].any():
        metas.pop(copy, None)


def _left_behind(
    records: npt.NDArray[np.void],
    spans: dict[int, tuple[int, int]],
    index: int,
    copy: int,
    threads: npt.NDArray[np.uint32],
) -> tuple[int, int]:
    """The slots of a chunk that are not in its copy: the process died while it moved them, from the first on."""
    first, last = spans[index]
    if copy not in spans:
        return first, last  # not begun, or cut off with the file's end
    if copy == index or threads[copy] != threads[index]:
        raise damaged(f"chunk {index} was being moved to chunk {copy}, which is another thread's")
    begin, end = spans[copy]
    there = np.flatnonzero(records["stamp"][begin:end])
    moved = min(int(there[-1]) + 1 if len(there) else 0, last - first)
    here = records[first : first + moved]
    if not ((here["stamp"] == 0) | (here == records[begin : begin + moved])).all():
        raise damaged(f"chunk {index} is not what was moved to chunk {copy}")
    return first + moved, last


def _chunk_header(chunk: npt.NDArray[np.uint8], index: int) -> tuple[ChunkKind, int, tuple[int, int], int] | None:
    """None for a chunk that was never handed out, and for one whose header is cut off."""
    if len(chunk) < layout.CHUNK.size:
        return None
    magic, kind, thread, sequence, time_ns, stamp, copying, *_ = layout.CHUNK.unpack_from(chunk.data)
    if magic == 0:
        return None
    if magic != layout.CHUNK_MAGIC or kind not in (ChunkKind.EVENTS, ChunkKind.META) or sequence != index:
        raise damaged(f"chunk {index} is not one")
    return ChunkKind(kind), thread, (stamp, time_ns), copying


def _known_scopes(entries: Entries) -> npt.NDArray[np.uint8]:
    """A table by scope id; ``rows`` refuses ids that are not in it."""
    ids = np.array([entry.fields[0] for entry in entries[layout.MetaType.SCOPE_BEGIN]], np.int64)
    table = np.zeros(1 + min(int(ids.max(initial=0)), MAX_SCOPE), np.uint8)
    table[ids[ids <= MAX_SCOPE]] = 1
    table[0] = 1
    return table


def _count_lost(contents: Contents, raw: RawHeader) -> Header:
    """The stamps that were given by the header's account and are not in what is left of the file."""
    firsts, lasts = contents.spans.first.tolist(), contents.spans.last.tolist()
    stamps = (int(np.count_nonzero(contents.records["stamp"][a:b])) for a, b in zip(firsts, lasts, strict=True))
    there = sum(stamps) + len(set(chain(contents.entries.stamps)))
    return replace(contents.header, dropped_events=raw.public.dropped_events + max(0, raw.stamps - there))
