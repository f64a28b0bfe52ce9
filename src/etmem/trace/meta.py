"""The side tables of a trace: entries of varying length, each checked against its bounds before it is read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from struct import Struct
from typing import Any

from etmem.model.errors import TraceError
from etmem.trace import layout
from etmem.trace.layout import MetaType

Buffer = memoryview

FIXED: dict[MetaType, Struct] = {
    MetaType.STRING: layout.STRING,
    MetaType.SCOPE_BEGIN: layout.SCOPE_BEGIN,
    MetaType.SCOPE_END: layout.SCOPE_END,
    MetaType.THREAD: layout.THREAD,
    MetaType.THREAD_END: layout.THREAD_END,
    MetaType.CLAIM: layout.CLAIM,
    MetaType.HEAP: layout.HEAP,
    MetaType.STACK: layout.STACK,
    MetaType.FILE_MAP: layout.FILE_MAP,
    MetaType.RSS: layout.RSS,
    MetaType.SNAPSHOT: layout.SNAPSHOT,
    MetaType.SNAPSHOT_MAPS: layout.SNAPSHOT_PART,
    MetaType.SNAPSHOT_PAGES: layout.SNAPSHOT_PART,
    MetaType.SEGMENT: layout.SEGMENT,
    MetaType.SEGMENT_FREE: layout.SEGMENT_FREE,
    MetaType.NOTE: layout.NOTE,
    MetaType.OWN: layout.OWN,
    MetaType.MODULE: layout.MODULE,
    MetaType.PYTHON_STACK: layout.PYTHON_STACK,
    MetaType.COUNTER: layout.COUNTER,
    MetaType.LABEL: layout.LABEL,
    MetaType.MISUSE: layout.MISUSE,
}

_TAIL_COUNT = {
    MetaType.STRING: 1,
    MetaType.STACK: 1,
    MetaType.SNAPSHOT_MAPS: 2,
    MetaType.SNAPSHOT_PAGES: 2,
    MetaType.PYTHON_STACK: 1,
}
_TAIL_UNIT = {
    MetaType.STRING: 1,
    MetaType.STACK: 8,
    MetaType.SNAPSHOT_MAPS: 1,
    MetaType.SNAPSHOT_PAGES: 24,
    MetaType.PYTHON_STACK: layout.PYTHON_FRAME.size,
}

MAX_STAMP = MAX_NS = 1 << 62
"""Larger ones are garbage; below it stamps and times can be subtracted as signed numbers."""

_TIME = {
    MetaType.SCOPE_BEGIN: 8,
    MetaType.SCOPE_END: 2,
    MetaType.THREAD: 6,
    MetaType.RSS: 2,
    MetaType.SNAPSHOT: 4,
    MetaType.COUNTER: 5,
}
"""Which field is a time."""


@dataclass(frozen=True)
class Entry:
    """One entry as it stands in the file."""

    stamp: int
    fields: tuple[Any, ...]
    tail: bytes = b""


@dataclass
class Entries:
    """All entries of a trace by type, in file order, and whether a chunk of them was torn."""

    by_type: dict[MetaType, list[Entry]] = field(default_factory=lambda: {kind: [] for kind in FIXED})
    torn: bool = False

    def __getitem__(self, kind: MetaType) -> list[Entry]:
        return self.by_type[kind]

    def in_order(self, *kinds: MetaType) -> list[tuple[MetaType, Entry]]:
        """The entries of some types in stamp order; file order where stamps are equal."""
        found = [(kind, entry) for kind in kinds for entry in self.by_type[kind]]
        return sorted(found, key=lambda pair: pair[1].stamp)

    @property
    def stamps(self) -> Iterator[int]:
        return (entry.stamp for entries in self.by_type.values() for entry in entries)


def damaged(what: str) -> TraceError:
    """The error for a file that no agent wrote like this."""
    return TraceError(f"the trace is damaged: {what}", "record it again, or copy it again if it was copied")


def read_chunk(payload: Buffer, entries: Entries, complete: bool) -> None:
    """Appends a chunk's entries. ``complete`` is false for the torn chunk at the end of a truncated file."""
    at = 0
    while at + layout.META.size <= len(payload):
        kind, size, stamp = layout.META.unpack_from(payload, at)
        if kind == MetaType.END:
            return
        if kind not in FIXED:
            raise damaged(f"an entry of unknown type {kind}")
        if size < layout.META.size + FIXED[kind].size or size % 8:
            raise damaged(f"a {MetaType(kind).name} entry of {size} bytes")
        if at + size > len(payload):
            if complete:
                raise damaged(f"a {MetaType(kind).name} entry runs over the end of its chunk")
            entries.torn = True
            return
        if stamp > MAX_STAMP:
            raise damaged(f"a {MetaType(kind).name} entry with stamp {stamp}")
        entries[MetaType(kind)].append(_entry(MetaType(kind), stamp, payload[at + layout.META.size : at + size]))
        at += size
    if not complete and at < len(payload):
        entries.torn = True


def _entry(kind: MetaType, stamp: int, body: Buffer) -> Entry:
    fixed = FIXED[kind]
    fields = fixed.unpack_from(body)
    if kind in _TIME and fields[_TIME[kind]] > MAX_NS:
        raise damaged(f"a {kind.name} entry at {fields[_TIME[kind]]} ns")
    if kind not in _TAIL_COUNT:
        return Entry(stamp, fields)
    size = fields[_TAIL_COUNT[kind]] * _TAIL_UNIT[kind]
    if size > len(body) - fixed.size:
        raise damaged(f"a {kind.name} entry promises {size} bytes and has {len(body) - fixed.size}")
    return Entry(stamp, fields, bytes(body[fixed.size : fixed.size + size]))
