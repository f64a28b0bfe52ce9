"""The header of a raw trace, checked before anything is derived from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from etmem.model.errors import TraceError
from etmem.trace import layout
from etmem.trace.layout import Status
from etmem.trace.meta import MAX_NS, damaged
from etmem.trace.tables import Header

HINT = "etmem reads what `etmem profile` and `etmem run` write"
_FIELDS = (
    "magic",
    "version",
    "header_bytes",
    "chunk_bytes",
    "event_bytes",
    "byte_order",
    "pointer_bytes",
    "page_bytes",
    "pid",
    "arch",
    "start_realtime_ns",
    "start_monotonic_ns",
    "chunks",
    "stamps",
    "dropped_events",
    "agent_bytes",
    "status",
    "reserved",
)
_MAX_HEADER_BYTES = 1 << 20
_MAX_CHUNK_BYTES = 1 << 28


@dataclass(frozen=True)
class RawHeader:
    """What the reader needs of it, and what the user sees of it."""

    header_bytes: int
    chunk_bytes: int
    chunks: int
    """Handed out when it was last written: at least so many."""
    stamps: int
    public: Header


def read_header(data: npt.NDArray[np.uint8]) -> RawHeader:
    """The header at the start of a file. ``public.truncated`` is false: the header cannot know."""
    if len(data) < layout.HEADER.size:
        raise TraceError("not an etmem trace, or one cut off in its header", HINT)
    values: dict[str, Any] = dict(zip(_FIELDS, layout.HEADER.unpack_from(data.data), strict=True))
    _check_identity(values)
    _check_sizes(values)
    if not values["arch"].isascii() or values["status"] >= 2 * Status.FORKED_CHILD:
        raise damaged("its header has an unreadable machine or status")
    if max(values["start_realtime_ns"], values["start_monotonic_ns"]) > MAX_NS:
        raise damaged("its header has an impossible time")
    status = Status(values["status"])
    header = Header(
        version=values["version"],
        pointer_bytes=values["pointer_bytes"],
        page_bytes=values["page_bytes"],
        pid=values["pid"],
        arch=values["arch"].rstrip(b"\0").decode("ascii"),
        start_realtime_ns=values["start_realtime_ns"],
        start_monotonic_ns=values["start_monotonic_ns"],
        dropped_events=values["dropped_events"],
        agent_bytes=values["agent_bytes"],
        closed=Status.CLOSED in status,
        stopped=Status.STOPPED in status,
        disk_full=Status.DISK_FULL in status,
        forked_child=Status.FORKED_CHILD in status,
        truncated=False,
    )
    return RawHeader(values["header_bytes"], values["chunk_bytes"], values["chunks"], values["stamps"], header)


def _check_identity(values: dict[str, Any]) -> None:
    if not any(values["magic"]):
        raise TraceError("recording never began", "the process ended while it was starting: see its log")
    if values["magic"] != layout.MAGIC:
        raise TraceError("not an etmem trace", HINT)
    if values["byte_order"] == layout.SWAPPED_BYTE_ORDER:
        raise TraceError("recorded on a big-endian device", "etmem reads what little-endian ones record")
    if values["byte_order"] != layout.BYTE_ORDER:
        raise damaged("its byte order is neither little-endian nor big-endian")
    if values["version"] not in layout.VERSIONS:
        raise TraceError(
            f"version {values['version']} of the trace format; this etmem reads up to version {layout.VERSION}",
            "read it with the etmem that wrote it, or a newer one",
        )


def _check_sizes(values: dict[str, Any]) -> None:
    record = layout.EVENT_DTYPE.itemsize
    if values["event_bytes"] != record:
        raise damaged(f"events of {values['event_bytes']} bytes")
    if not layout.HEADER.size <= values["header_bytes"] <= _MAX_HEADER_BYTES or values["header_bytes"] % record:
        raise damaged(f"a header of {values['header_bytes']} bytes")
    if not layout.CHUNK.size < values["chunk_bytes"] <= _MAX_CHUNK_BYTES or values["chunk_bytes"] % record:
        raise damaged(f"chunks of {values['chunk_bytes']} bytes")
    page_bytes = values["page_bytes"]
    if values["pointer_bytes"] not in (4, 8) or page_bytes < 512 or page_bytes & (page_bytes - 1):
        raise damaged(f"pages of {page_bytes} bytes, pointers of {values['pointer_bytes']}")
