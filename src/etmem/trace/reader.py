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
from etmem.trace import layout, rows
from etmem.trace.events import StoredEvents, sort
from etmem.trace.layout import ChunkKind, Status
from etmem.trace.meta import Entries, damaged, read_chunk
from etmem.trace.native import passes as available_passes
from etmem.trace.passes import Passes, Spans
from etmem.trace.tables import Events, Header, Trace

_HINT = "etmem reads what `etmem profile` and `etmem run` write"
_MAX_CHUNK_BYTES = 1 << 28
_MAX_SLOTS = 1 << 32
"""An event's place in the file is kept in 32 bits: 128 GiB of trace."""


@dataclass(frozen=True)
class RawHeader:
    """The header's fields as they stand in the file, after they were found to make sense."""

    version: int
    header_bytes: int
    chunk_bytes: int
    pointer_bytes: int
    page_bytes: int
    pid: int
    arch: str
    start_realtime_ns: int
    start_monotonic_ns: int
    chunks: int
    stamps: int
    dropped_events: int
    agent_bytes: int
    status: Status

    def public(self, truncated: bool) -> Header:
        return Header(
            version=self.version,
            pointer_bytes=self.pointer_bytes,
            page_bytes=self.page_bytes,
            pid=self.pid,
            arch=self.arch,
            start_realtime_ns=self.start_realtime_ns,
            start_monotonic_ns=self.start_monotonic_ns,
            dropped_events=self.dropped_events,
            agent_bytes=self.agent_bytes,
            closed=Status.CLOSED in self.status,
            stopped=Status.STOPPED in self.status,
            disk_full=Status.DISK_FULL in self.status,
            forked_child=Status.FORKED_CHILD in self.status,
            truncated=truncated,
        )


@dataclass(frozen=True)
class Contents:
    """A raw trace, walked: what both the reader and ``pack`` start from."""

    header: Header
    entries: Entries
    points: list[tuple[int, int]]
    """(stamp, time_ns) of each chunk."""
    records: npt.NDArray[np.void]
    spans: Spans


def read(path: Path) -> Trace:
    """The trace in a file, raw or packed. Raises TraceError; the file stays mapped while the Trace lives."""
    data = open_mapped(path)
    try:
        if bytes(data[: len(layout.MAGIC)]) != layout.MAGIC:
            from etmem.trace import packed  # zstandard is needed for packed traces only

            if packed.is_packed(data):
                return packed.parse(data)
        return parse(data)
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
    native = available_passes()
    survey, events = order_events(contents, native)
    del survey
    return assemble(contents.header, contents.entries, contents.points, events)


def assemble(header: Header, entries: Entries, points: list[tuple[int, int]], events: Events) -> Trace:
    table = rows.build(entries, points, is_whole(header))
    return Trace(header=header, events=events, **{name: getattr(table, name) for name in table.__dataclass_fields__})


def is_whole(header: Header) -> bool:
    """Whether the process closed its trace and lost nothing: every id that is used is then defined."""
    return header.closed and not (header.stopped or header.disk_full or header.truncated or header.dropped_events)


def order_events(contents: Contents, native: Passes) -> tuple[int, StoredEvents]:
    survey = native.survey(contents.records, contents.spans)
    if survey.unknown_scopes and is_whole(contents.header):
        raise damaged(f"{survey.unknown_scopes} events are in scopes that nothing defines")
    order = sort(contents.records, contents.spans, survey, native)
    return survey.events, StoredEvents(contents.records, order, contents.spans, native)


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
    spans: list[tuple[int, int]] = []
    threads = np.zeros(chunks, np.uint32)
    slots = raw.chunk_bytes // layout.EVENT_DTYPE.itemsize
    for index in range(chunks):
        chunk = payload[index * raw.chunk_bytes : (index + 1) * raw.chunk_bytes]
        head = _chunk_header(chunk, index)
        if head is None:
            continue
        kind, threads[index], point = head
        points.append(point)
        if kind is ChunkKind.EVENTS:
            spans.append((index * slots + layout.CHUNK.size // 32, index * slots + len(chunk) // 32))
        else:
            read_chunk(memoryview(chunk[layout.CHUNK.size :]), entries, len(chunk) == raw.chunk_bytes)
    bounds = np.array(spans, np.uint64).reshape(-1, 2)
    records = payload[: len(payload) // 32 * 32].view(layout.EVENT_DTYPE)
    first, last = (np.ascontiguousarray(bounds[:, side]) for side in (0, 1))
    contents = Contents(
        header=raw.public(truncated),
        entries=entries,
        points=points,
        records=records,
        spans=Spans(first, last, threads, slots, _known_scopes(entries)),
    )
    return replace(contents, header=_count_lost(contents, raw)) if truncated else contents


def read_header(data: npt.NDArray[np.uint8]) -> RawHeader:
    if len(data) < layout.HEADER.size:
        raise TraceError("not an etmem trace, or one cut off in its header", _HINT)
    magic, *numbers = layout.HEADER.unpack_from(data)
    if magic == bytes(len(magic)):
        raise TraceError(
            "recording never began", "the process ended, or was killed, while it was starting: see its log"
        )
    if magic != layout.MAGIC:
        raise TraceError("not an etmem trace", _HINT)
    version, header_bytes, chunk_bytes, event_bytes, byte_order, pointer_bytes, page_bytes, pid, arch, *rest = numbers
    if byte_order != layout.BYTE_ORDER:
        raise damaged("its byte order is not little-endian")
    if version != layout.VERSION:
        raise TraceError(
            f"version {version} of the trace format; this etmem reads version {layout.VERSION}",
            "read it with the etmem that wrote it, or a newer one",
        )
    if event_bytes != layout.EVENT_DTYPE.itemsize or header_bytes < layout.HEADER.size or header_bytes % 32:
        raise damaged(f"a header of {header_bytes} bytes for events of {event_bytes}")
    if not layout.CHUNK.size < chunk_bytes <= _MAX_CHUNK_BYTES or chunk_bytes % 32:
        raise damaged(f"chunks of {chunk_bytes} bytes")
    if pointer_bytes not in (4, 8) or page_bytes < 512 or page_bytes & (page_bytes - 1) or header_bytes > 1 << 20:
        raise damaged(f"pages of {page_bytes} bytes, pointers of {pointer_bytes}, a header of {header_bytes}")
    *times_and_counts, status, _ = rest
    try:
        name = arch.rstrip(b"\0").decode("ascii")
        flags = Status(status)
    except ValueError:
        raise damaged("its header names no machine or has an unknown status") from None
    if not 0 <= int(flags) < 16:
        raise damaged(f"its status is {status:#x}")
    sizes = (header_bytes, chunk_bytes, pointer_bytes, page_bytes)
    return RawHeader(version, *sizes, pid, name, *times_and_counts, flags)


def _chunk_header(chunk: npt.NDArray[np.uint8], index: int) -> tuple[ChunkKind, int, tuple[int, int]] | None:
    """None for a chunk that was never handed out, and for one whose header is cut off."""
    if len(chunk) < layout.CHUNK.size:
        return None
    magic, kind, thread, sequence, time_ns, stamp, *_ = layout.CHUNK.unpack_from(chunk)
    if magic == 0:
        return None
    if magic != layout.CHUNK_MAGIC or kind not in (ChunkKind.EVENTS, ChunkKind.META) or sequence != index:
        raise damaged(f"chunk {index} is not one")
    return ChunkKind(kind), thread, (stamp, time_ns)


def _known_scopes(entries: Entries) -> npt.NDArray[np.uint8]:
    """A table by scope id. Ids count up from 1, so one beyond all that was recorded is garbage."""
    ids = np.array([entry.fields[0] for entry in entries[layout.MetaType.SCOPE_BEGIN]], np.int64)
    table = np.zeros(1 + min(int(ids.max(initial=0)), 1 << 24), np.uint8)
    if len(ids) and int(ids.max()) >= len(table):
        raise damaged(f"a scope with id {int(ids.max())}")
    table[ids] = 1
    table[0] = 1
    return table


def _count_lost(contents: Contents, raw: RawHeader) -> Header:
    """The stamps that were given by the header's account and are not in what is left of the file."""
    firsts, lasts = contents.spans.first.tolist(), contents.spans.last.tolist()
    stamps = (int(np.count_nonzero(contents.records["stamp"][a:b])) for a, b in zip(firsts, lasts, strict=True))
    there = sum(stamps) + len(set(chain(contents.entries.stamps)))
    return replace(contents.header, dropped_events=raw.dropped_events + max(0, raw.stamps - there))
