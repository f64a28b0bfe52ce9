"""Records on their way into a file: stamps, strings, stacks, chunks. ``writer`` says what they mean."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from struct import Struct
from typing import Any

from etmem.trace import layout
from etmem.trace.layout import ChunkKind, MetaType, Status
from etmem.trace.reader import parse
from etmem.trace.tables import EventKind, Trace


class _Chunk:
    """One chunk being filled."""

    def __init__(self, header: bytes, capacity: int) -> None:
        self.payload = bytearray(header)
        self.capacity = capacity

    def fits(self, size: int) -> bool:
        return len(self.payload) + size <= self.capacity

    def bytes(self) -> bytes:
        return bytes(self.payload).ljust(self.capacity, b"\0")


class Recording:
    """A trace that is being recorded, one thread at a time."""

    def __init__(
        self, *, pid: int = 1000, arch: str = "x86_64", step_ns: int = 1000, chunk_bytes: int = layout.CHUNK_BYTES
    ) -> None:
        self.pid = pid
        self.arch = arch
        self.step_ns = step_ns
        self.chunk_bytes = chunk_bytes
        self.start_ns = 1_000_000
        self.stamp = 0
        """The last stamp given."""
        self.dropped_events = 0
        self.agent_bytes = 0
        self.status = Status.CLOSED
        self._elapsed_ns = 0
        self._thread = pid
        self._chunks: list[_Chunk] = []
        self._open: dict[int, _Chunk] = {}
        self._strings: dict[str, int] = {"": 0}
        self._stacks: dict[tuple[int, ...], int] = {(): 0}
        self._scopes: dict[int, list[int]] = {}
        self._ids = dict.fromkeys(("scope", "heap", "segment", "snapshot"), 0)

    @property
    def time_ns(self) -> int:
        return self.start_ns + self._elapsed_ns

    def advance(self, ns: int) -> None:
        """Lets time pass with nothing recorded."""
        self._elapsed_ns += ns

    @contextmanager
    def on(self, thread: int) -> Iterator[None]:
        """Within it, calls are made by this thread."""
        previous, self._thread = self._thread, thread
        try:
            yield
        finally:
            self._thread = previous

    def string(self, text: str) -> int:
        known = self._strings.get(text)
        if known is None:
            known = self._strings[text] = len(self._strings)
            data = text.encode("utf-8", "surrogateescape")
            self._meta(MetaType.STRING, layout.STRING.pack(known, len(data)) + data)
        return known

    # The result.

    def to_bytes(self) -> bytes:
        """The file as the agent would leave it."""
        sizes = (layout.HEADER_BYTES, self.chunk_bytes, layout.EVENT_DTYPE.itemsize)
        counts = (len(self._chunks), self.stamp, self.dropped_events, self.agent_bytes)
        header = layout.HEADER.pack(
            layout.MAGIC, layout.VERSION, *sizes, layout.BYTE_ORDER, 8, 4096, self.pid,
            self.arch.encode(), 1_700_000_000_000_000_000, self.start_ns, *counts, self.status, 0,
        )  # fmt: skip
        return header.ljust(layout.HEADER_BYTES, b"\0") + b"".join(chunk.bytes() for chunk in self._chunks)

    def write(self, path: Path) -> Path:
        path.write_bytes(self.to_bytes())
        return path

    def trace(self) -> Trace:
        return parse(self.to_bytes())

    # Records.

    def _next(self, kind: str) -> int:
        self._ids[kind] += 1
        return self._ids[kind]

    def _tick(self) -> int:
        self.stamp += 1
        self._elapsed_ns += self.step_ns
        return self.stamp

    def _scope(self, scope: int | None, thread: int | None) -> int:
        if scope is not None:
            return scope
        open_scopes = self._scopes.get(self._thread if thread is None else thread)
        return open_scopes[-1] if open_scopes else 0

    def _stack(self, frames: Sequence[int]) -> int:
        key = tuple(frames)
        known = self._stacks.get(key)
        if known is None:
            known = self._stacks[key] = len(self._stacks)
            data = b"".join(frame.to_bytes(8, "little") for frame in key)
            self._meta(MetaType.STACK, layout.STACK.pack(known, len(key)) + data)
        return known

    def _event(
        self,
        kind: EventKind,
        address: int = 0,
        size: int = 0,
        flags: int = 0,
        scope: int | None = None,
        stack: int = 0,
        thread: int | None = None,
    ) -> int:
        tid = self._thread if thread is None else thread
        chunk = self._room(ChunkKind.EVENTS, tid, layout.EVENT_DTYPE.itemsize)
        stamp = self._tick()
        word = size | kind << layout.SIZE_BITS | flags << layout.SIZE_BITS + 8
        chunk.payload += Struct("<3Q2I").pack(stamp, address, word, self._scope(scope, tid), stack)
        return stamp

    def _meta(
        self, kind: MetaType, body: bytes | Struct, *fields: Any, stamp: int | None = None, time: bool = False
    ) -> int:
        """Appends one entry; ``time`` adds its moment as the last field."""
        stamp = self._tick() if stamp is None else stamp
        if isinstance(body, Struct):
            body = body.pack(*fields, *((self.time_ns,) if time else ()))
        size = layout.META.size + len(body) + 7 & ~7
        chunk = self._room(ChunkKind.META, 0, size)
        chunk.payload += (layout.META.pack(kind, size, stamp) + body).ljust(size, b"\0")
        return stamp

    def _room(self, kind: ChunkKind, thread: int, size: int) -> _Chunk:
        chunk = self._open.get(thread)
        if chunk is None or not chunk.fits(size):
            place = (layout.CHUNK_MAGIC, kind, thread, len(self._chunks), self.time_ns, self.stamp)
            chunk = _Chunk(layout.CHUNK.pack(*place, 0, 0, 0, 0), self.chunk_bytes)
            if not chunk.fits(size):
                raise ValueError(f"an entry of {size} bytes does not fit into a chunk of {self.chunk_bytes}")
            self._open[thread] = chunk
            self._chunks.append(chunk)
        return chunk
