"""A process that died while a thread moved its full chunk to another: each event counts once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etmem.model.errors import TraceError
from etmem.trace import layout
from etmem.trace.reader import parse, walk
from etmem.trace.writer import TraceBuilder

CHUNK = 1024
SLOTS = (CHUNK - layout.CHUNK.size) // 32
COPYING = layout.HEADER_BYTES + layout.CHUNK.size - 32
EVENTS = layout.HEADER_BYTES + layout.CHUNK.size
COPY = layout.HEADER_BYTES + CHUNK


def full_chunk(missing: int | None = None) -> bytearray:
    """Chunk 0 full of events of one thread, but for one that was never finished; an empty chunk 1 behind it."""
    b = TraceBuilder(chunk_bytes=CHUNK)
    for i in range(SLOTS):
        b.alloc(0x1000 * (i + 1), i + 1)
    data = bytearray(b.to_bytes() + bytes(CHUNK))
    if missing is not None:
        data[EVENTS + 32 * missing : EVENTS + 32 * missing + 32] = bytes(32)
    return data


def moved(data: bytearray, copied: int, emptied: int, target: int = 1) -> bytes:
    """After `copied` bytes of chunk 1 were written and the stamps of `emptied` events of chunk 0 zeroed."""
    found = bytearray(data)
    copy = bytearray(data[layout.HEADER_BYTES : COPY])
    copy[12:16] = (1).to_bytes(4, "little")
    found[COPY : COPY + copied] = copy[:copied]
    for slot in range(emptied):
        found[EVENTS + 32 * slot : EVENTS + 32 * slot + 8] = bytes(8)
    found[COPYING : COPYING + 8] = (target + 1).to_bytes(8, "little")
    return bytes(found)


def stamps(data: bytes) -> list[int]:
    found: list[int] = parse(data).events.stamp.tolist()
    return found


@given(st.integers(0, CHUNK), st.one_of(st.none(), st.integers(0, SLOTS - 1)))
def test_while_it_is_copied(copied: int, missing: int | None) -> None:
    data = full_chunk(missing)
    # what the kernel copies ends at whole records: pages are
    copied = copied // 32 * 32 if copied >= layout.CHUNK.size else 0
    assert stamps(moved(data, copied, 0)) == stamps(bytes(data))


@given(st.integers(0, SLOTS), st.one_of(st.none(), st.integers(0, SLOTS - 1)))
def test_while_it_is_emptied(emptied: int, missing: int | None) -> None:
    data = full_chunk(missing)
    assert stamps(moved(data, CHUNK, emptied)) == stamps(bytes(data))


def test_two_chunks_that_are_not_the_same() -> None:
    data = bytearray(moved(full_chunk(), CHUNK, 0))
    data[EVENTS + 8] ^= 1
    with pytest.raises(TraceError, match="is not what was moved"):
        parse(bytes(data))


def test_a_chunk_of_another_thread() -> None:
    data = bytearray(moved(full_chunk(), CHUNK, 0))
    data[COPY + 8] ^= 1
    with pytest.raises(TraceError, match="another thread's"):
        parse(bytes(data))


def test_a_chunk_that_was_moved_into_itself() -> None:
    with pytest.raises(TraceError, match="moved to chunk 0"):
        parse(moved(full_chunk(), 0, 0, target=0))


def test_one_that_was_moved_beyond_the_end_is_read() -> None:
    assert len(stamps(moved(full_chunk(), 0, 0, target=2**40))) == SLOTS
    assert np.all(np.diff(stamps(moved(full_chunk(), 0, 0, target=2**40))) > 0)


def full_tables() -> tuple[bytearray, list[int]]:
    """Chunk 0 full of side tables, an empty chunk 1 behind it; and the stamps of the entries."""
    b = TraceBuilder(chunk_bytes=CHUNK)
    for i in range((CHUNK - layout.CHUNK.size) // 32):
        b.note(f"k{i % 4}", "v")
        if len(b._chunks) > 1:
            break
    data = b.to_bytes()[:COPY]
    return bytearray(data + bytes(CHUNK)), list(walk(np.frombuffer(data, np.uint8)).entries.stamps)


@pytest.mark.parametrize("copied", [*range(0, CHUNK, 128), CHUNK])
def test_side_tables_while_they_are_copied(copied: int) -> None:
    """GIVEN that only a part of the copy was written THEN the chunk itself counts, alone."""
    data, expected = full_tables()
    assert table_stamps(moved(data, copied, 0)) == expected


def test_side_tables_when_they_were_emptied() -> None:
    """GIVEN the first entry's type is 0 THEN the copy counts, and nothing of what is still behind that entry."""
    data, expected = full_tables()
    found = bytearray(moved(data, CHUNK, 0))
    found[EVENTS : EVENTS + 4] = bytes(4)
    assert table_stamps(bytes(found)) == expected
    found[COPYING : COPYING + 8] = bytes(8)
    assert table_stamps(bytes(found)) == expected


def test_side_tables_that_were_moved_to_an_earlier_chunk() -> None:
    data, _ = full_tables()
    with pytest.raises(TraceError, match="which was there before"):
        table_stamps(moved(data, 0, 0, target=0))


def table_stamps(data: bytes) -> list[int]:
    return list(walk(np.frombuffer(data, np.uint8)).entries.stamps)
