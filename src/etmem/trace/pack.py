"""Packs a closed trace: its events by columns, its side tables as they are. ``read`` takes both."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO

import numpy as np

from etmem.model.errors import EtmemError, TraceError, reason
from etmem.trace import layout
from etmem.trace.columns import DTYPES, compress, encode
from etmem.trace.packed import BLOCK_ROWS, MAGIC, PART, PRELUDE, VERSION, Part, PartKind, is_packed
from etmem.trace.reader import Contents, open_mapped, order_events, walk


def pack(path: Path, out: Path) -> None:
    """Writes the packed form of the raw trace ``path`` to ``out``, which may be the same path.

    ``out`` appears whole or not at all, and ``path`` stays as it is until then. Memory: one block of events.
    Raises TraceError when ``path`` is not a whole raw trace, EtmemError when ``out`` cannot be written.
    """
    data = open_mapped(path)
    if is_packed(data):
        raise TraceError(f"{path}: the trace is packed already", "use it as it is")
    try:
        contents = walk(data)
        with _replacing(out, path) as file:
            _Packer(file).write(contents, bytes(data[: layout.HEADER.size]))
    except TraceError as error:
        raise TraceError(f"{path}: {error.message}", error.hint) from None
    except OSError as error:
        hint = f"{path} is as it was; make room, or write to another place"
        raise EtmemError(f"{out}: cannot write the packed trace: {reason(error)}", hint) from None


@contextmanager
def _replacing(out: Path, like: Path) -> Iterator[IO[bytes]]:
    """A new file beside ``out`` that takes its place, and the permissions of ``like``, at the end."""
    with NamedTemporaryFile(dir=out.parent, prefix=f".{out.name}.", suffix=".tmp", delete=False) as file:
        try:
            yield file
            file.flush()
            os.fchmod(file.fileno(), like.stat().st_mode & 0o777)
            Path(file.name).replace(out)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise


class _Packer:
    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.parts: list[Part] = []

    def write(self, contents: Contents, header: bytes) -> None:
        events = order_events(contents)
        self.file.write(bytes(PRELUDE.size) + header)
        self._add(PartKind.POINTS, np.array(contents.points, "<u8").tobytes())
        for payload, complete in contents.meta_chunks:
            self._add(PartKind.META if complete else PartKind.TORN_META, bytes(payload))
        for block in events.batches(BLOCK_ROWS):
            for index, name in enumerate(DTYPES):
                column = getattr(block, name)
                self._put(PartKind.COLUMN, encode(name, column), column.nbytes, index, len(column))
        packed_index = compress(b"".join(PART.pack(*vars(part).values()) for part in self.parts))
        place = (self.file.tell(), len(packed_index))
        self.file.write(packed_index)
        self.file.seek(0)
        counts = (contents.header.dropped_events, len(events), len(self.parts))
        self.file.write(PRELUDE.pack(MAGIC, VERSION, int(contents.header.truncated), *counts, *place))

    def _add(self, kind: PartKind, data: bytes) -> None:
        self._put(kind, compress(data), len(data))

    def _put(self, kind: PartKind, packed: bytes, size: int, column: int = 0, rows: int = 0) -> None:
        self.parts.append(Part(kind, column, self.file.tell(), len(packed), size, rows))
        self.file.write(packed)
