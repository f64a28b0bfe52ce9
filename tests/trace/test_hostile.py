"""Whatever is in the file: a trace, or a TraceError. Nothing else, and not for long."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from struct import Struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etmem.model.errors import TraceError
from etmem.trace import layout, packed
from etmem.trace.arenas import arenas
from etmem.trace.blocks import blocks
from etmem.trace.header import read_header
from etmem.trace.layout import MetaType
from etmem.trace.pack import pack
from etmem.trace.reader import parse, read
from etmem.trace.tables import EventKind, ScopeKind, Trace
from etmem.trace.writer import TraceBuilder
from tests.trace.sample import columns, everything

RAW = everything().to_bytes()
PACKED = (Path(__file__).parent / "golden" / "v2.packed").read_bytes()


def use(trace: Trace) -> None:
    """Everything that a report would look at."""
    table, _ = blocks(trace)
    assert (table.begin <= table.end).all()
    columns(trace.events)
    arenas(trace)


def check(error: TraceError) -> None:
    assert error.hint
    assert "\n" not in error.message


def survives(data: bytes) -> None:
    is_packed = data[:8] == packed.MAGIC
    try:
        use(packed.parse(np.frombuffer(data, np.uint8)) if is_packed else parse(data))
    except TraceError as error:
        check(error)


def test_cut_anywhere_a_raw_trace_says_so() -> None:
    whole = len(parse(RAW).events)
    for size in range(len(RAW)):
        if size % 64 and not any(RAW[max(0, size - 16) : size]):
            continue  # one more zero of the padding
        try:
            trace = parse(RAW[:size])
        except TraceError:
            assert size < layout.HEADER.size
            continue
        use(trace)
        assert trace.header.truncated
        assert len(trace.events) <= whole


def test_cut_anywhere_a_packed_trace_is_an_error() -> None:
    for size in range(8, len(PACKED)):
        with pytest.raises(TraceError):
            packed.parse(np.frombuffer(PACKED[:size], np.uint8))


@settings(max_examples=400, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(RAW) * 8 - 1)), min_size=1, max_size=4))
def test_flipped_bits_in_a_raw_trace(bits: list[tuple[int]]) -> None:
    data = bytearray(RAW)
    for (bit,) in bits:
        data[bit // 8] ^= 1 << bit % 8
    survives(bytes(data))


@settings(max_examples=300, deadline=None)
@given(st.integers(0, len(PACKED) * 8 - 1))
def test_flipped_bits_in_a_packed_trace(bit: int) -> None:
    data = bytearray(PACKED)
    data[bit // 8] ^= 1 << bit % 8
    survives(bytes(data))


@settings(max_examples=300, deadline=None)
@given(st.integers(0, (len(RAW) - 8) // 4), st.sampled_from([0, 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1]))
def test_huge_numbers_anywhere_in_a_raw_trace(word: int, value: int) -> None:
    data = bytearray(RAW)
    data[word * 4 : word * 4 + 8] = value.to_bytes(8, "little")
    survives(bytes(data))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=600))
def test_random_payload_in_a_chunk_of_side_tables(payload: bytes) -> None:
    b = TraceBuilder(chunk_bytes=1024)
    b.note("a", "b")
    data = bytearray(b.to_bytes())
    at = layout.HEADER_BYTES + layout.CHUNK.size
    data[at : at + len(payload)] = payload
    survives(bytes(data))


def test_counts_that_promise_more_than_there_is(tmp_path: Path) -> None:
    prelude = packed.PRELUDE
    fields = list(prelude.unpack_from(PACKED))
    for index in range(4, len(fields)):
        changed = [*fields]
        changed[index] = 2**63
        with pytest.raises(TraceError):
            packed.parse(np.frombuffer(prelude.pack(*changed) + PACKED[prelude.size :], np.uint8))
    raw = tmp_path / "raw"
    raw.write_bytes(RAW[:-100])
    pack(raw, tmp_path / "packed")
    assert packed.parse(np.fromfile(tmp_path / "packed", np.uint8)).header.truncated


def test_a_trace_of_four_gigabytes_is_read_in_little_memory(tmp_path: Path) -> None:
    """GIVEN chunks that were allocated ahead, and one more behind 4 GiB of them THEN only they are looked at."""
    path = tmp_path / "large.etmem"
    path.write_bytes(RAW)
    header = read_header(np.frombuffer(RAW, np.uint8))
    index = -(-(4 << 30) // header.chunk_bytes)
    last = layout.CHUNK.pack(layout.CHUNK_MAGIC, layout.ChunkKind.EVENTS, 1, index, 0, 0, 0, 0, 0, 0)
    word = 64 | EventKind.ALLOC << layout.SIZE_BITS
    with path.open("r+b") as file:
        file.truncate(header.header_bytes + (index + 1) * header.chunk_bytes)
        file.seek(header.header_bytes + index * header.chunk_bytes)
        file.write(last + Struct("<3Q2I").pack(10**6, 0x7000_0000, word, 0, 0))
    tracemalloc.start()
    trace = read(path)
    table, _ = blocks(trace)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(trace.events) == len(parse(RAW).events) + 1
    assert table.begin[-1] == 10**6
    assert most < 64 << 20


def test_scopes_inside_each_other_are_an_error() -> None:
    b = TraceBuilder()
    b.scope_begin(ScopeKind.TAG, parent=2)
    b.scope_begin(ScopeKind.TAG, parent=1)
    with pytest.raises(TraceError, match="inside scope 2"):
        b.trace()


def test_a_scope_that_is_its_own_parent_is_an_error() -> None:
    b = TraceBuilder()
    b.scope_begin(ScopeKind.TAG, parent=1)
    with pytest.raises(TraceError, match="inside scope 1"):
        b.trace()


def _twice_defined() -> list[tuple[MetaType, Struct, tuple[int, ...]]]:
    return [
        (MetaType.STRING, layout.STRING, (77, 0)),
        (MetaType.SCOPE_BEGIN, layout.SCOPE_BEGIN, (5, 0, 1, 0, 1, 0, 0, 0, 0)),
        (MetaType.HEAP, layout.HEAP, (5, 0, 0, 0, 0, 0)),
        (MetaType.STACK, layout.STACK, (5, 0)),
        (MetaType.SEGMENT, layout.SEGMENT, (0, 0, 0, 5, 0, 0, 0, 0, 0)),
        (MetaType.SNAPSHOT, layout.SNAPSHOT, (5, 0, 0, 0, 0, 0, 0, 0, 0, 0)),
    ]


@pytest.mark.parametrize(("kind", "record", "fields"), _twice_defined())
def test_an_id_that_is_defined_twice_is_an_error(kind: MetaType, record: Struct, fields: tuple[int, ...]) -> None:
    b = TraceBuilder()
    b._meta(kind, record, *fields)
    b.trace()
    b._meta(kind, record, *fields)
    with pytest.raises(TraceError, match="twice"):
        b.trace()


@pytest.mark.parametrize(
    "damage",
    [
        lambda b: b.scope_end(9),
        lambda b: b.segment_free(9),
        lambda b: b.claim(1, 1, "a", scope=9),
        lambda b: b._meta(MetaType.NOTE, layout.NOTE, 99, 0),
        lambda b: b.claim(2**64 - 1, 2, "a"),
        lambda b: b._meta(MetaType.RSS, layout.RSS, 9, 0, 0, 0, 0, 0, 0),
        lambda b: b._meta(MetaType.SCOPE_BEGIN, layout.SCOPE_BEGIN, 1, 0, 99, 0, 1, 0, 0, 0, 0),
        lambda b: b._meta(MetaType.STACK, layout.STACK.pack(1, 2**31)),
        lambda b: b._meta(MetaType.SNAPSHOT_PAGES, layout.SNAPSHOT_PART.pack(1, 0, 2**32 - 1, 0)),
        lambda b: b._meta(MetaType.NOTE, layout.NOTE, 0, 0, stamp=2**63),
        lambda b: b._meta(MetaType.RSS, layout.RSS, 1, 0, 2**63, 0, 0, 0, 0),
        lambda b: b._meta(MetaType.SCOPE_END, layout.SCOPE_END, 1, 0, 2**64 - 1),
        lambda b: setattr(b, "start_ns", 2**63),
    ],
)
def test_what_no_agent_writes_is_an_error(damage: object) -> None:
    b = TraceBuilder()
    damage(b)  # type: ignore[operator]
    with pytest.raises(TraceError, match="damaged"):
        b.trace()


def test_an_entry_that_leaves_its_chunk_is_an_error() -> None:
    b = TraceBuilder(chunk_bytes=256)
    b.note("a", "b")
    data = bytearray(b.to_bytes())
    data[layout.HEADER_BYTES + layout.CHUNK.size + 4] = 0xF0
    with pytest.raises(TraceError, match="over the end of its chunk"):
        parse(bytes(data))
