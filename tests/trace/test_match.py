from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from etmem.trace.blocks import blocks
from etmem.trace.model import ModelPasses
from etmem.trace.native import LIBRARY, NativePasses, passes
from etmem.trace.passes import HeapBlocks, LiveRows, Passes
from etmem.trace.tables import NEVER, BlockKind, EventKind, Events
from etmem.trace.writer import TraceBuilder

_KINDS = [EventKind.ALLOC, EventKind.FREE, EventKind.UNDO, EventKind.UNMAP, EventKind.MAP, EventKind.HEAP_ALLOC]
_ROWS = st.lists(st.tuples(st.sampled_from(_KINDS), st.integers(0, 5), st.integers(1, 3)), max_size=60)


def as_events(rows: list[tuple[EventKind, int, int]]) -> Events:
    count = len(rows)
    kind = np.array([row[0] for row in rows], np.uint8)
    address = np.array([row[1] for row in rows], np.uint64)
    thread = np.array([row[2] for row in rows], np.uint32)
    numbers = np.arange(1, count + 1)
    words, halves = numbers.astype(np.uint64), numbers.astype(np.uint32)
    return Events(3 * words, kind, np.zeros(count, np.uint8), address, words, halves, 2 * halves, thread)


def run(native: Passes, events: Events, piece: int) -> tuple[HeapBlocks, list[bool]]:
    matcher = native.matcher(len(events))
    undone = [flag for batch in events.batches(piece) for flag in matcher.feed(batch).tolist()]
    return matcher.finish(), undone


@settings(max_examples=500, deadline=None)
@given(_ROWS, st.integers(1, 70))
@example([(EventKind.ALLOC, 0, 1), (EventKind.FREE, 0, 1), (EventKind.UNDO, 0, 1)], 1)
def test_native_and_model_agree(native_folder: Path, rows: list[tuple[EventKind, int, int]], piece: int) -> None:
    events = as_events(rows)
    native, native_undone = run(NativePasses(native_folder / LIBRARY), events, piece)
    model, model_undone = run(ModelPasses(), events, max(1, len(rows)))
    assert native_undone == model_undone
    for name, column in vars(model).items():
        np.testing.assert_array_equal(getattr(native, name), column, err_msg=name)


def test_native_and_model_agree_on_many_blocks(native_folder: Path) -> None:
    """Enough live blocks for the table to grow twice, with runs of neighbours that wrap and shift back."""
    random = np.random.default_rng(7)
    count = 400_000
    rows = as_events([])
    kind = np.where(random.random(count) < 0.6, EventKind.ALLOC, EventKind.FREE).astype(np.uint8)
    address = random.integers(1, 150_000, count).astype(np.uint64) * np.uint64(16)
    words, halves = np.arange(1, count + 1, dtype=np.uint64), np.ones(count, np.uint32)
    rows = Events(words, kind, np.zeros(count, np.uint8), address, words, halves, halves, halves)
    native, _ = run(NativePasses(native_folder / LIBRARY), rows, 1 << 16)
    model, _ = run(ModelPasses(), rows, count)
    assert model.unmatched_frees > 1000
    assert model.replaced_allocations > 1000
    for name, column in vars(model).items():
        np.testing.assert_array_equal(getattr(native, name), column, err_msg=name)


def heap_rows(b: TraceBuilder, use: Passes) -> tuple[list[tuple[int, int, int]], tuple[int, int, int]]:
    table, stats = blocks(b.trace(), use)
    assert (table.kind == BlockKind.HEAP).all()
    ends = [None if end == NEVER else int(end) for end in table.end]
    return list(zip(table.begin.tolist(), ends, table.bytes.tolist(), strict=True)), (
        stats.unmatched_frees,
        stats.replaced_allocations,
        stats.unmatched_undos,
    )


def test_a_free_ends_the_block_of_its_address(passes: Passes) -> None:
    b = TraceBuilder()
    one, two = b.alloc(0x1000, 10), b.alloc(0x2000, 20)
    end = b.free(0x1000, thread=7)
    again = b.alloc(0x1000, 30)
    assert heap_rows(b, passes) == ([(one, end, 10), (two, None, 20), (again, None, 30)], (0, 0, 0))


def test_a_failed_realloc_leaves_the_block_as_it_was(passes: Passes) -> None:
    b = TraceBuilder()
    begin = b.alloc(0x1000, 10)
    b.free(0x1000)
    b.undo(0x1000)
    assert heap_rows(b, passes) == ([(begin, None, 10)], (0, 0, 0))
    end = b.free(0x1000)
    assert heap_rows(b, passes) == ([(begin, end, 10)], (0, 0, 0))


def test_an_undo_is_about_the_thread_that_freed(passes: Passes) -> None:
    b = TraceBuilder()
    one, two = b.alloc(0x1000, 10), b.alloc(0x2000, 20)
    end = b.free(0x1000, thread=1)
    b.free(0x2000, thread=2)
    b.undo(0x2000, thread=2)
    assert heap_rows(b, passes) == ([(one, end, 10), (two, None, 20)], (0, 0, 0))
    b.undo(0x1000, thread=2)
    assert heap_rows(b, passes) == ([(one, end, 10), (two, None, 20)], (0, 0, 1))


def test_a_failed_realloc_of_an_unknown_block_is_no_unmatched_free(passes: Passes) -> None:
    b = TraceBuilder()
    b.free(0x1000)
    assert heap_rows(b, passes) == ([], (1, 0, 0))
    b.undo(0x1000)
    assert heap_rows(b, passes) == ([], (0, 0, 0))


def test_an_undo_of_a_taken_address_does_not_revive(passes: Passes) -> None:
    b = TraceBuilder()
    begin = b.alloc(0x1000, 10)
    end = b.free(0x1000)
    other = b.alloc(0x1000, 20, thread=9)
    b.undo(0x1000)
    assert heap_rows(b, passes) == ([(begin, end, 10), (other, None, 20)], (0, 0, 0))


def test_an_allocation_over_a_live_block_ends_it(passes: Passes) -> None:
    b = TraceBuilder()
    one = b.alloc(0x1000, 10)
    two = b.alloc(0x1000, 20)
    end = b.free(0x1000)
    assert heap_rows(b, passes) == ([(one, two, 10), (two, end, 20)], (0, 1, 0))


def test_rows_keep_scope_stack_and_thread(passes: Passes) -> None:
    b = TraceBuilder()
    b.alloc(0x1000, 10)
    with b.on(7):
        scope = b.scope_begin(1, "x")  # type: ignore[arg-type]
        b.alloc(0x2000, 20, stack=(1, 2))
    table, _ = blocks(b.trace(), passes)
    assert table.scope.tolist() == [0, scope]
    assert table.stack.tolist() == [0, 1]
    assert table.thread.tolist() == [1000, 7]
    assert table.file.tolist() == [-1, -1]


def test_without_a_library_the_model_reads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ETMEM_NATIVE_DIR", str(tmp_path))
    assert isinstance(passes(), ModelPasses)
    other = tmp_path / "other"
    other.mkdir()
    (other / LIBRARY).write_bytes(b"\x7fELF of another machine")
    monkeypatch.setenv("ETMEM_NATIVE_DIR", str(other))
    assert isinstance(passes(), ModelPasses)


def test_with_a_library_it_is_used(native_folder: Path) -> None:
    assert isinstance(passes(), NativePasses)


_LIVE = st.lists(
    st.tuples(st.integers(1, 60), st.one_of(st.integers(1, 30), st.none()), st.integers(0, 9), st.booleans()),
    max_size=40,
)


@settings(max_examples=500, deadline=None)
@given(_LIVE, st.integers(0, 60), st.integers(0, 70))
def test_timelines_agree(
    native_folder: Path, rows: list[tuple[int, int | None, int, bool]], since: int, length: int
) -> None:
    begin = np.array([row[0] for row in rows], np.uint64)
    end = np.array([NEVER if row[1] is None else row[0] + row[1] for row in rows], np.uint64)
    weights, wanted = np.array([row[2] for row in rows], np.int64), np.array([row[3] for row in rows], np.bool_)
    live = LiveRows(begin, end, weights, wanted)
    native, model = (one.timeline(live, since, since + length) for one in (_native(native_folder), ModelPasses()))
    for of_native, of_model in zip(native, model, strict=True):
        np.testing.assert_array_equal(of_native, of_model)
    replay = [
        sum(row[2] for row in rows if row[3] and row[0] <= stamp and (row[1] is None or stamp < row[0] + row[1]))
        for stamp in range(since, since + length + 1)
    ]
    places = np.searchsorted(native[0], np.arange(since, since + length + 1, dtype=np.uint64), "right") - 1
    assert native[1][places].tolist() == replay


def test_a_timeline_of_few_rows_far_apart(native_folder: Path) -> None:
    """A table of all stamps would be larger than any memory."""
    begin, end = np.array([1, 2**60], np.uint64), np.array([2**61, NEVER], np.uint64)
    live = LiveRows(begin, end, np.array([5, 7]), np.ones(2, np.bool_))
    stamps, values = _native(native_folder).timeline(live, 0, 2**62)
    assert stamps.tolist() == [0, 1, 2**60, 2**61]
    assert values.tolist() == [0, 5, 12, 7]


def _native(folder: Path) -> Passes:
    return NativePasses(folder / LIBRARY)
