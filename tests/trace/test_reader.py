from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from struct import Struct

import numpy as np
import pytest

from etmem.model.errors import TraceError
from etmem.trace import layout
from etmem.trace.blocks import blocks
from etmem.trace.events import StoredEvents, sort
from etmem.trace.layout import Status
from etmem.trace.passes import Passes
from etmem.trace.reader import parse, read, walk
from etmem.trace.tables import CounterUnit, EventKind, MemoryKind, MisuseKind, RssLabel, ScopeKind, SegmentType, Trace
from etmem.trace.writer import TraceBuilder
from tests.trace.sample import MIB, assert_same, columns, everything, everything_of_version_2

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture
def trace() -> Trace:
    return everything().trace()


def test_golden_file_is_what_the_writer_writes() -> None:
    assert everything_of_version_2().to_bytes() == (GOLDEN / "v2.trace").read_bytes()


@pytest.mark.parametrize("form", ["trace", "packed"])
def test_golden_files_are_read(form: str, trace: Trace) -> None:
    of_version_1 = replace(trace, header=replace(trace.header, version=1))
    assert_same(read(GOLDEN / f"v1.{form}"), of_version_1)
    assert_same(read(GOLDEN / f"v2.{form}"), everything_of_version_2().trace())


def test_what_version_2_brought() -> None:
    trace = everything_of_version_2().trace()
    assert [(heap.name, heap.memory) for heap in trace.heaps.values()] == [
        ("method_allocator", MemoryKind.HOST),
        ("frames", MemoryKind.GPU),
    ]
    assert [(c.name, c.unit, c.value) for c in trace.counters] == [
        ("fps", CounterUnit.NUMBER, 30),
        ("driver", CounterUnit.BYTES, 1 << 40),
    ]
    assert [(label.address, label.bytes, label.name) for label in trace.labels] == [(0x6000, 16, "table")]
    assert [(m.kind, m.scope) for m in trace.misuses] == [(MisuseKind.SCOPE_END, 1)]


def test_a_big_endian_recording_is_refused_in_its_own_words() -> None:
    data = everything().to_bytes()
    swapped = data[:8] + np.frombuffer(data[8:40], "<u4").astype(">u4").tobytes() + data[40:]
    with pytest.raises(TraceError, match="big-endian"):
        parse(swapped)


def test_scopes_nest_and_know_their_times(trace: Trace) -> None:
    load, method, delegate, tag, cache, inference = trace.scopes.values()
    assert (load.kind, load.name, load.a) == (ScopeKind.PROGRAM_LOAD, "mlp.pte", 1)
    assert (delegate.parent, delegate.name) == (method.id, "XnnpackBackend")
    assert (cache.category, cache.failed, tag.category, tag.failed) == ("workspace", True, "", False)
    assert method.end_stamp is not None
    assert method.end_ns - method.begin_ns == 1000 * (method.end_stamp - method.begin_stamp)
    assert (inference.end_stamp, inference.end_ns) == (None, None)


def test_rows_have_their_names(trace: Trace) -> None:
    assert trace.note("executorch.version") == "1.5.1"
    assert [(t.tid, t.existed_before, t.end_stamp is None) for t in trace.threads] == [
        (1000, True, True),
        (1001, False, False),
    ]
    (claim,) = trace.claims
    assert (claim.owner, claim.category, claim.name, claim.bytes) == ("executorch", "planned_memory", "planned[1]", 256)
    (segment,) = trace.segments
    assert (segment.type, segment.name, segment.bytes) == (SegmentType.BACKEND, "XnnpackBackend", 9000)
    assert segment.freed_stamp is not None
    assert segment.freed_scope == 1
    (file_map,) = trace.file_maps
    assert (file_map.path, file_map.offset) == ("/models/mlp.pte", 4096)
    assert file_map.stamp in trace.events.stamp[trace.events.kind == EventKind.MAP]
    assert trace.heaps[1].owner == "executorch"
    assert trace.stacks == {1: (0x7E0000000010, 0x7E0000000200)}
    assert [(m.path, m.build_id) for m in trace.modules] == [("/lib/libxnnpack.so", "c0ffee")]
    assert [(o.name, o.bytes) for o in trace.own] == [("arena", 65536)]
    assert [(r.label, r.rss_bytes) for r in trace.rss] == [(RssLabel.START, 4 * MIB)]


def test_a_snapshot_in_parts_is_one(trace: Trace) -> None:
    (snapshot,) = trace.snapshots
    assert snapshot.maps == "00400000-00401000 r--p\n" * 60
    assert snapshot.pages.tolist() == [[4096, 12288, 8]] * 40
    assert snapshot.scanned


def test_a_snapshot_that_was_started_over_is_what_was_read_last() -> None:
    b = TraceBuilder()
    for part, start in ((0, 4096), (2, 8192), (0, 12288), (3, 16384)):
        record = layout.SNAPSHOT_PART.pack(1, part, 1, 0) + Struct("<3Q").pack(start, start + 4096, 8)
        b._meta(layout.MetaType.SNAPSHOT_PAGES, record)
    b.snapshot("inference")
    assert b.trace().snapshots[0].pages[:, 0].tolist() == [12288, 16384]


def test_a_snapshot_without_its_end_is_none() -> None:
    b = TraceBuilder()
    b._meta(layout.MetaType.SNAPSHOT_MAPS, layout.SNAPSHOT_PART.pack(1, 0, 4, 0) + b"text")
    assert b.trace().snapshots == ()


def test_the_clock_rises_in_both_columns(trace: Trace) -> None:
    assert (np.diff(trace.clock.astype(np.int64), axis=0) > 0).all()
    assert len(trace.clock) > len(trace.scopes)


def test_a_chunk_without_a_time_is_no_point_of_the_clock() -> None:
    b = TraceBuilder(chunk_bytes=256)
    b.note("a", "b")
    data = bytearray(b.to_bytes())
    head = list(layout.CHUNK.unpack_from(data, layout.HEADER_BYTES))
    head[3:5] = [1, 0]
    data += layout.CHUNK.pack(*head).ljust(256, b"\0")
    assert parse(bytes(data)).clock.tolist() == [[1, 1_001_000]]


def test_events_of_all_threads_are_in_stamp_order(passes: Passes) -> None:
    b = TraceBuilder(chunk_bytes=128)
    for turn in range(50):
        with b.on(1000 + turn % 3):
            b.alloc(0x1000 * (turn + 1), turn)
    contents = walk(np.frombuffer(b.to_bytes(), np.uint8))
    survey = passes.survey(contents.records, contents.spans)
    order = sort(contents.records, contents.spans, survey, passes)
    events = StoredEvents(contents.records, order, contents.spans, passes)
    assert events.size.tolist() == list(range(50))
    assert events.thread.tolist() == [1000 + turn % 3 for turn in range(50)]
    pieces = list(events.batches(7))
    assert [len(piece) for piece in pieces] == [7] * 7 + [1]
    assert np.concatenate([piece.stamp for piece in pieces]).tolist() == events.stamp.tolist()


def test_what_a_signal_handler_mixed_up_is_put_in_order(passes: Passes) -> None:
    b = TraceBuilder()
    for size in range(4):
        b.alloc(0x1000 + size * 64, size)
    data = bytearray(b.to_bytes())
    first = layout.HEADER_BYTES + layout.CHUNK.size
    records = [bytes(data[first + 32 * i : first + 32 * i + 32]) for i in range(4)]
    hole = bytes(8) + records[1][8:]
    data[first : first + 160] = b"".join([records[2], hole, records[0], hole, records[3]])
    contents = walk(np.frombuffer(bytes(data), np.uint8))
    order = sort(contents.records, contents.spans, passes.survey(contents.records, contents.spans), passes)
    assert StoredEvents(contents.records, order, contents.spans, passes).size.tolist() == [0, 2, 3]


def test_stamps_far_apart_are_sorted_without_a_table_of_all_stamps(passes: Passes) -> None:
    b = TraceBuilder(chunk_bytes=160)
    for turn in range(20):
        b.stamp += 1 << 40
        b.alloc(0x1000 + turn * 64, turn, thread=1000 + turn % 2)
    contents = walk(np.frombuffer(b.to_bytes(), np.uint8))
    order = sort(contents.records, contents.spans, passes.survey(contents.records, contents.spans), passes)
    assert StoredEvents(contents.records, order, contents.spans, passes).size.tolist() == list(range(20))


def test_two_events_with_one_stamp_are_an_error(passes: Passes) -> None:
    b = TraceBuilder()
    b.alloc(0x1000, 1)
    b.stamp -= 1
    b.alloc(0x2000, 1)
    contents = walk(np.frombuffer(b.to_bytes(), np.uint8))
    survey = passes.survey(contents.records, contents.spans)
    with pytest.raises(TraceError, match="one stamp"):
        sort(contents.records, contents.spans, survey, passes)


def test_an_event_of_unknown_kind_is_an_error(passes: Passes) -> None:
    b = TraceBuilder()
    b.alloc(0x1000, 1)
    data = bytearray(b.to_bytes())
    data[layout.HEADER_BYTES + layout.CHUNK.size + 22] = 99
    contents = walk(np.frombuffer(bytes(data), np.uint8))
    with pytest.raises(TraceError, match="unknown kind 99"):
        passes.survey(contents.records, contents.spans)


def test_a_block_beyond_the_address_space_is_an_error(passes: Passes) -> None:
    b = TraceBuilder()
    b.alloc((1 << 64) - 8, 64)
    contents = walk(np.frombuffer(b.to_bytes(), np.uint8))
    with pytest.raises(TraceError, match="impossible"):
        passes.survey(contents.records, contents.spans)


def test_a_killed_process_leaves_a_trace() -> None:
    b = everything()
    b.status = Status(0)
    data = b.to_bytes() + bytes(2 * b.chunk_bytes)
    trace = parse(data)
    assert (trace.header.closed, trace.header.truncated) == (False, False)
    assert columns(trace.events) == columns(everything().trace().events)


def test_a_cut_file_counts_what_it_lost() -> None:
    b = TraceBuilder(chunk_bytes=1024)
    for turn in range(200):
        b.alloc(0x1000 + turn * 64, 8)
    data = b.to_bytes()
    kept = parse(data[: layout.HEADER_BYTES + 3 * 1024])
    assert kept.header.truncated
    assert len(kept.events) == 90
    assert kept.header.dropped_events == 110
    assert not parse(data).header.truncated


def test_an_event_in_a_scope_that_nothing_begins(passes: Passes) -> None:
    b = TraceBuilder()
    b.alloc(0x1000, 8, scope=5)
    with pytest.raises(TraceError, match="scopes that nothing defines"):
        b.trace()
    b.dropped_events = 1
    assert b.trace().events.scope.tolist() == [0]
    contents = walk(np.frombuffer(b.to_bytes(), np.uint8))
    survey = passes.survey(contents.records, contents.spans)
    assert survey.unknown_scopes == 1
    order = passes.order(contents.records, contents.spans, survey)
    assert passes.column("scope", contents.records, order, contents.spans).tolist() == [0]


def test_a_tid_that_lives_twice_is_two_threads() -> None:
    b = TraceBuilder()
    b.thread(7)
    first_end = b.thread_end(7)
    b.thread(7)
    assert [thread.end_stamp for thread in b.trace().threads] == [first_end, None]


def test_a_trace_with_nothing_in_it_is_one() -> None:
    trace = TraceBuilder().trace()
    assert len(trace.events) == 0
    assert trace.events.stamp.tolist() == []
    assert len(blocks(trace)[0]) == 0
    assert trace.clock.shape == (0, 2)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"just a text file\n" * 40, "not an etmem trace"),
        (bytes(8192), "never began"),
        (b"ETMEMTZ\1", "cut off"),
    ],
)
def test_other_files_are_told_apart(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "x.etmem"
    path.write_bytes(content)
    with pytest.raises(TraceError, match=message) as caught:
        read(path)
    assert str(path) in caught.value.message
    assert caught.value.hint
    assert "\n" not in caught.value.message


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(TraceError) as caught:
            read(path)
        assert caught.value.hint


def test_a_newer_version_is_named() -> None:
    data = bytearray(everything().to_bytes())
    data[8] = 9
    with pytest.raises(TraceError, match="version 9"):
        parse(bytes(data))
