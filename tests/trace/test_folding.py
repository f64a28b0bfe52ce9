"""Folded blocks: none is lost, none that anybody looks at is folded, and timelines do not change."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from etmem.trace import folding
from etmem.trace.blocks import Matched, match
from etmem.trace.folding import live_at, unfold
from etmem.trace.model import ModelPasses
from etmem.trace.native import LIBRARY, NativePasses
from etmem.trace.passes import Folding, LiveRows, Passes
from etmem.trace.tables import NEVER, NOT_FOLDED, Blocks, EventKind, Events, Trace
from etmem.trace.writer import TraceBuilder

_KINDS = [EventKind.ALLOC, EventKind.ALLOC, EventKind.FREE, EventKind.UNDO, EventKind.UNMAP, EventKind.MAP]
_KINDS += [EventKind.HEAP_ALLOC]
_ROW = st.tuples(
    st.sampled_from(_KINDS),
    st.integers(0, 5),
    st.integers(1, 3),
    st.integers(8, 9),
    st.integers(0, 1),
    st.integers(1, 3),
)
_ROWS = st.lists(_ROW, max_size=80)
_LOOSE = ("begin", "end", "address", "folded")
"""In what folded blocks of one row may differ."""


def as_trace(rows: list[tuple[EventKind, int, int, int, int, int]]) -> Trace:
    """Kind, address, thread, size, scope and steps of the stamp."""
    kind, address, thread, size, scope, step = zip(*rows, strict=True) if rows else ((),) * 6
    stamps = np.cumsum(np.array(step, np.uint64), dtype=np.uint64)
    flags, stack = np.array(address, np.uint8) % 2, np.zeros(len(rows), np.uint32)
    places = np.array(address, np.uint64) << np.uint64(25)
    ids = (np.array(column, np.uint32) for column in (scope, stack, thread))
    events = Events(stamps, np.array(kind, np.uint8), flags, places, np.array(size, np.uint64), *ids)
    return replace(TraceBuilder().trace(), events=events)


def each(matched: Matched) -> Counter[tuple[int, ...]]:
    """Every block by all that is known of it but the address."""
    blocks, brief = matched.blocks, matched.brief
    names = [column.name for column in fields(Blocks) if column.name not in _LOOSE]
    alone = np.flatnonzero(blocks.folded == 0)
    begin = np.concatenate([blocks.begin[alone], brief.begin])
    end = np.concatenate([blocks.end[alone], brief.begin + brief.life])
    row = np.concatenate([alone, brief.row.astype(np.int64)])
    columns = [begin, end, *(getattr(blocks, name)[row] for name in names)]
    return Counter(zip(*(column.tolist() for column in columns), strict=True))


def native(folder: Path) -> Passes:
    return NativePasses(folder / LIBRARY)


@settings(max_examples=500, deadline=None)
@given(_ROWS, st.lists(st.integers(1, 160), max_size=6), st.integers(-1, 5))
@example([(EventKind.ALLOC, 0, 1, 8, 0, 1), (EventKind.FREE, 0, 1, 8, 0, 1), (EventKind.UNDO, 0, 1, 8, 0, 3)], [3], -1)
def test_no_block_is_lost_and_none_that_is_live_at_an_edge_is_folded(
    native_folder: Path, rows: list[tuple[EventKind, int, int, int, int, int]], stamps: list[int], first: int
) -> None:
    edges = np.unique(np.array(stamps, np.uint64))
    since = int(edges[first]) if 0 <= first < len(edges) else 0
    trace = as_trace(rows)
    whole = match(trace, use=ModelPasses())
    folded = match(trace, Folding(edges, since), native(native_folder))
    wanted = Counter({one: count for one, count in each(whole).items() if one[1] > since})
    found = Counter({one: count for one, count in each(folded).items() if one[1] > since})
    assert found == wanted
    assert folded.last_stamp == whole.last_stamp
    brief = folded.brief
    assert not len(live_at(brief, edges))
    np.testing.assert_array_equal(np.bincount(brief.row, minlength=len(folded.blocks)), folded.blocks.folded)
    assert (np.diff(folded.blocks.begin.astype(np.int64)) >= 0).all()
    assert (np.diff(brief.begin.astype(np.int64)) > 0).all()
    # An extent of a heap lies in a block that was live when it was handed out.
    heap_allocs = trace.events.stamp[trace.events.kind == EventKind.HEAP_ALLOC]
    assert not len(live_at(brief, heap_allocs))


@settings(max_examples=500, deadline=None)
@given(_ROWS, st.lists(st.integers(1, 160), max_size=6), st.lists(st.integers(0, 160), max_size=9), st.integers(0, 9))
def test_timelines_of_folded_blocks(
    native_folder: Path,
    rows: list[tuple[EventKind, int, int, int, int, int]],
    stamps: list[int],
    more: list[int],
    until: int,
) -> None:
    trace, edges = as_trace(rows), np.unique(np.array(stamps, np.uint64))
    folded = match(trace, Folding(edges, 0), native(native_folder))
    blocks, last = folded.blocks, max(folded.last_stamp - until, 1)
    live = LiveRows(
        blocks.begin, blocks.end, blocks.bytes.astype(np.int64), blocks.scope == 0, blocks.folded, folded.brief
    )
    whole = match(trace, use=ModelPasses()).blocks
    plain = LiveRows(whole.begin, whole.end, whole.bytes.astype(np.int64), whole.scope == 0)
    full = ModelPasses().timeline(plain, 0, last)
    for one in (native(native_folder), ModelPasses()):
        for of_one, of_full in zip(one.timeline(live, 0, last), full, strict=True):
            np.testing.assert_array_equal(of_one, of_full)
    bins = np.unique(np.array(more, np.uint64))
    thin = [one.timeline(live, 0, last, bins) for one in (native(native_folder), ModelPasses())]
    for of_native, of_model in zip(*thin, strict=True):
        np.testing.assert_array_equal(of_native, of_model)
    kept = dict(zip(thin[0][0].tolist(), thin[0][1].tolist(), strict=True))
    whole_line = dict(zip(full[0].tolist(), full[1].tolist(), strict=True))
    assert kept.items() <= whole_line.items()
    for low, high in zip([0, *bins.tolist()], [*bins.tolist(), last + 1], strict=True):
        for most in (max, min):
            assert most(states(kept, low, high), default=0) == most(states(whole_line, low, high), default=0)
        assert states(kept, low, high)[:1] == states(whole_line, low, high)[:1]


def states(line: dict[int, int], low: int, high: int) -> list[int]:
    """The value at ``low``, and all that follow before ``high``."""
    if low >= high:
        return []
    before = max(stamp for stamp in line if stamp <= low)
    return [line[before], *(line[stamp] for stamp in sorted(line) if low < stamp < high)]


@settings(max_examples=300, deadline=None)
@given(_ROWS, st.lists(st.integers(1, 160), max_size=5), st.lists(st.integers(1, 160), max_size=5), st.booleans())
def test_what_is_looked_at_gets_a_row(
    native_folder: Path,
    rows: list[tuple[EventKind, int, int, int, int, int]],
    stamps: list[int],
    looks: list[int],
    many: bool,
) -> None:
    trace, edges = as_trace(rows), np.unique(np.array(stamps, np.uint64))
    folded = match(trace, Folding(edges, 0), native(native_folder))
    looked_at = np.unique(np.array(range(1, 200) if many else looks, np.uint64))
    whole = replace(folded, blocks=folding.unfold_all(folded.blocks, folded.brief), brief=NOT_FOLDED)
    assert not whole.blocks.folded.any()
    assert each(whole) == each(folded)
    blocks, brief = unfold(folded.blocks, folded.brief, looked_at)
    assert not len(live_at(brief, looked_at))
    alive = np.flatnonzero(brief.life)
    left = replace(brief, begin=brief.begin[alive], life=brief.life[alive], row=brief.row[alive])
    assert each(replace(folded, blocks=blocks, brief=left)) == each(folded)
    np.testing.assert_array_equal(np.bincount(left.row, minlength=len(blocks)), blocks.folded)
    assert (np.diff(blocks.begin.astype(np.int64)) >= 0).all()


def test_alike_blocks_share_a_row(native_folder: Path) -> None:
    b = TraceBuilder()
    first = b.alloc(0x1000, 16)
    b.free(0x1000)
    for size in (16, 16, 32):
        b.alloc(0x2000, size)
        b.free(0x2000)
    edge = b.stamp + 1
    b.stamp += 1
    b.alloc(0x1000, 16)
    b.free(0x1000)
    kept = b.alloc(0x1000, 16)
    found = match(b.trace(), Folding(np.array([edge], np.uint64), 0), native(native_folder))
    rows = zip(found.blocks.bytes.tolist(), found.blocks.folded.tolist(), found.blocks.begin.tolist(), strict=True)
    # The last of the thread's frees before an edge could still be undone behind it.
    assert list(rows) == [(16, 3, first), (32, 0, first + 6), (16, 1, edge + 1), (16, 0, kept)]
    assert found.brief.row.tolist() == [0, 0, 0, 2]
    assert folding.saved(found.blocks, found.brief) == 2


def test_a_free_that_can_still_be_undone_keeps_its_row(native_folder: Path) -> None:
    """A failed realloc over an edge: the block lives on."""
    b = TraceBuilder()
    begin = b.alloc(0x1000, 10)
    b.free(0x1000)
    edge = b.stamp + 1
    b.stamp += 1
    b.alloc(0x2000, 20, thread=7)
    b.undo(0x1000)
    found = match(b.trace(), Folding(np.array([edge], np.uint64), 0), native(native_folder))
    assert found.blocks.begin.tolist()[0] == begin
    assert found.blocks.end.tolist() == [NEVER, NEVER]


def test_no_folded_block_lives_over_a_window(native_folder: Path) -> None:
    """A life is kept in 32 bits, and a timeline is laid out window by window."""
    b = TraceBuilder()
    for _ in range(3):
        b.alloc(0x1000, 10)
        b.stamp = (b.stamp // folding.LONGEST + 1) * folding.LONGEST + 5
        b.free(0x1000)
    b.alloc(0x1000, 10)
    b.free(0x1000)
    found = match(b.trace(), Folding(np.empty(0, np.uint64), 0), native(native_folder))
    assert found.blocks.folded.tolist() == [0, 0, 0, 1]


@pytest.mark.parametrize("regions", [1, 5])
def test_each_arena_keeps_a_row_that_lies_in_it(native_folder: Path, regions: int) -> None:
    b = TraceBuilder()
    for _ in range(4):
        for region in range(regions):
            b.alloc(0x7F0000000000 + (region << 26), 16)
            b.free(0x7F0000000000 + (region << 26))
    found = match(b.trace(), Folding(np.empty(0, np.uint64), 0), native(native_folder))
    assert found.blocks.folded.tolist() == [4] * regions


def test_a_timeline_over_several_windows(native_folder: Path) -> None:
    random = np.random.default_rng(3)
    count = 200_000
    kind = np.where(random.random(count) < 0.55, EventKind.ALLOC, EventKind.FREE).astype(np.uint8)
    stamps = np.cumsum(random.integers(1, 30, count), dtype=np.uint64)
    address = random.integers(1, 3000, count).astype(np.uint64) * np.uint64(64)
    size, ones = random.integers(1, 40, count).astype(np.uint64), np.ones(count, np.uint32)
    events = Events(stamps, kind, np.zeros(count, np.uint8), address, size, ones, ones, ones)
    trace = replace(TraceBuilder().trace(), events=events)
    since, until = int(stamps[count // 5]), int(stamps[count - count // 5])
    folded = match(trace, Folding(np.array([since], np.uint64), since), native(native_folder))
    assert stamps[-1] > 2 * folding.LONGEST
    assert len(folded.brief) > count // 10
    blocks, whole = folded.blocks, match(trace, use=ModelPasses()).blocks
    wanted = np.ones(len(blocks), np.bool_)
    live = LiveRows(blocks.begin, blocks.end, blocks.bytes.astype(np.int64), wanted, blocks.folded, folded.brief)
    plain = LiveRows(whole.begin, whole.end, whole.bytes.astype(np.int64), np.ones(len(whole), np.bool_))
    for bins in (None, np.arange(since, until, 1000, dtype=np.uint64)):
        found = native(native_folder).timeline(live, since, until, bins)
        for of_native, of_model in zip(found, ModelPasses().timeline(plain, since, until, bins), strict=True):
            np.testing.assert_array_equal(of_native, of_model)


def test_the_first_of_a_row_keeps_its_address(native_folder: Path) -> None:
    b = TraceBuilder()
    stamps = [b.stamp + 1 + 2 * at for at in range(3)]
    for at in range(3):
        b.alloc(0x1000 * (at + 1), 16)
        b.free(0x1000 * (at + 1))
    found = match(b.trace(), Folding(np.empty(0, np.uint64), 0), native(native_folder))
    for looked_at, addresses in (([stamps[0]], [0x1000, 0x1000]), ([stamps[1]], [0x1000, 0]), (stamps, [0x1000, 0, 0])):
        blocks, _ = unfold(found.blocks, found.brief, np.array(looked_at, np.uint64))
        assert blocks.address.tolist() == addresses
