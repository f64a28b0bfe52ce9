from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etmem.trace.blocks import blocks
from etmem.trace.mappings import IntervalMap, Piece
from etmem.trace.tables import NEVER, BlockKind, Blocks, MapFlag, ScopeKind
from etmem.trace.writer import TraceBuilder

PAGE = 4096
BASE = 0x7F0000000000


def at(page: int) -> int:
    return BASE + page * PAGE


def table_of(b: TraceBuilder) -> Blocks:
    return blocks(b.trace())[0]


def rows(b: TraceBuilder) -> list[tuple[int, int | None, int, int, str]]:
    """(begin, end, first page, pages, kind) of each block."""
    t = table_of(b)
    return [
        (begin, None if end == int(NEVER) else end, (address - BASE) // PAGE, size // PAGE, BlockKind(kind).name)
        for begin, end, address, size, kind in zip(
            *(getattr(t, name).tolist() for name in ("begin", "end", "address", "bytes", "kind")), strict=True
        )
    ]


def test_map_and_unmap() -> None:
    b = TraceBuilder()
    begin = b.map(at(0), 4 * PAGE)
    end = b.unmap(at(0), 4 * PAGE)
    assert rows(b) == [(begin, end, 0, 4, "ANONYMOUS")]


def test_sizes_are_whole_pages() -> None:
    b = TraceBuilder()
    begin = b.map(at(0), PAGE + 1)
    end = b.unmap(at(1), 1)
    assert rows(b) == [(begin, end, 0, 2, "ANONYMOUS"), (end, None, 0, 1, "ANONYMOUS")]


@pytest.mark.parametrize(
    ("first", "pages", "left"),
    [(0, 1, [(1, 3)]), (3, 1, [(0, 3)]), (1, 2, [(0, 1), (3, 1)]), (0, 4, []), (-1, 6, []), (9, 1, None)],
)
def test_a_partial_unmap_leaves_pieces(first: int, pages: int, left: list[tuple[int, int]] | None) -> None:
    b = TraceBuilder()
    with b.on(7), b.scope(ScopeKind.PROGRAM_LOAD, "m") as scope:
        begin = b.map(at(0), 4 * PAGE, path="/m.pte")
    end = b.unmap(at(first), pages * PAGE)
    if left is None:
        assert rows(b) == [(begin, None, 0, 4, "FILE")]
        return
    assert rows(b) == [(begin, end, 0, 4, "FILE"), *((end, None, page, count, "FILE") for page, count in left)]
    table = table_of(b)
    assert set(table.scope.tolist()) == {scope}
    assert set(table.thread.tolist()) == {7}
    assert set(table.file.tolist()) == {0}


def test_a_mapping_over_another_replaces_what_it_covers() -> None:
    b = TraceBuilder()
    one = b.map(at(0), 2 * PAGE)
    two = b.map(at(2), 2 * PAGE, flags=MapFlag.SHARED)
    over = b.map(at(1), 2 * PAGE, flags=MapFlag.FIXED, path="/lib.so")
    assert rows(b) == [
        (one, over, 0, 2, "ANONYMOUS"),
        (two, over, 2, 2, "SHARED"),
        (over, None, 0, 1, "ANONYMOUS"),
        (over, None, 1, 2, "FILE"),
        (over, None, 3, 1, "SHARED"),
    ]


def test_reserved_parts_become_their_makers_when_they_are_made_accessible() -> None:
    b = TraceBuilder()
    begin = b.map(at(0), 4 * PAGE, flags=MapFlag.RESERVED)
    with b.on(7), b.scope(ScopeKind.METHOD_LOAD, "forward") as scope:
        commit = b.protect(at(1), PAGE)
    back = b.protect(at(0), 4 * PAGE, none=True)
    assert rows(b) == [
        (begin, commit, 0, 4, "RESERVED"),
        (commit, None, 0, 1, "RESERVED"),
        (commit, back, 1, 1, "ANONYMOUS"),
        (commit, None, 2, 2, "RESERVED"),
        (back, None, 1, 1, "RESERVED"),
    ]
    assert table_of(b).scope.tolist() == [0, 0, scope, 0, scope]


def test_a_file_that_is_protected_stays_a_file() -> None:
    b = TraceBuilder()
    begin = b.map(at(0), PAGE, path="/m.pte")
    none = b.protect(at(0), PAGE, none=True)
    some = b.protect(at(0), PAGE)
    assert rows(b) == [(begin, none, 0, 1, "FILE"), (none, some, 0, 1, "RESERVED"), (some, None, 0, 1, "FILE")]
    assert table_of(b).file.tolist() == [0, 0, 0]


def test_mremap_moves_what_it_was_to_whom_it_is_now() -> None:
    b = TraceBuilder()
    begin = b.map(at(0), 2 * PAGE, path="/m.pte")
    with b.scope(ScopeKind.INFERENCE, "forward") as scope:
        gone = b.unmap(at(0), 2 * PAGE)
        moved = b.map(at(8), 4 * PAGE, flags=MapFlag.MOVED)
    assert rows(b) == [(begin, gone, 0, 2, "FILE"), (moved, None, 8, 4, "FILE")]
    assert table_of(b).scope.tolist() == [0, scope]
    assert table_of(b).file.tolist() == [0, 0]


def test_only_the_unmap_just_before_it_belongs_to_an_mremap() -> None:
    b = TraceBuilder()
    b.map(at(0), PAGE, path="/m.pte")
    b.unmap(at(0), PAGE)
    b.map(at(4), PAGE)
    moved = b.map(at(8), PAGE, flags=MapFlag.MOVED)
    assert rows(b)[-1] == (moved, None, 8, 1, "ANONYMOUS")


def test_a_failed_mremap_or_munmap_never_happened() -> None:
    b = TraceBuilder()
    begin = b.map(at(0), 2 * PAGE)
    b.unmap(at(1), PAGE)
    b.unmap(at(5), PAGE)
    b.undo(at(1))
    assert rows(b) == [(begin, None, 0, 2, "ANONYMOUS")]
    b.undo(at(1))
    assert blocks(b.trace())[1].unmatched_undos == 1


def test_an_undo_picks_the_later_of_free_and_unmap() -> None:
    b = TraceBuilder()
    b.map(at(0), PAGE)
    end = b.unmap(at(0), PAGE)
    begin = b.alloc(at(0), PAGE)
    b.free(at(0))
    b.undo(at(0))
    table = table_of(b)
    assert table.end.tolist() == [end, int(NEVER)]
    assert table.begin.tolist()[1] == begin


def test_nested_mappings_are_not_blocks() -> None:
    b = TraceBuilder()
    begin = b.map(at(0), PAGE)
    b.map(at(4), PAGE, flags=MapFlag.NESTED)
    b.unmap(at(4), PAGE)
    assert rows(b) == [(begin, None, 0, 1, "ANONYMOUS")]


def test_the_break_grows_and_shrinks() -> None:
    b = TraceBuilder()
    first = b.brk(at(2), 2 * PAGE)
    second = b.brk(at(3), PAGE)
    b.brk(at(3), 0)
    less = b.brk(at(1), -2 * PAGE)
    assert rows(b) == [
        (first, less, 0, 2, "ANONYMOUS"),
        (second, less, 2, 1, "ANONYMOUS"),
        (less, None, 0, 1, "ANONYMOUS"),
    ]


def test_a_break_that_is_less_than_its_growth_stops_at_zero() -> None:
    b = TraceBuilder()
    b.brk(PAGE, 3 * PAGE)
    table = table_of(b)
    assert (table.address.tolist(), table.bytes.tolist()) == ([0], [PAGE])


def test_advice_changes_no_block() -> None:
    b = TraceBuilder()
    begin = b.map(at(0), 2 * PAGE)
    b.advise(at(0), PAGE)
    b.advise(at(1), PAGE, free=True)
    assert rows(b) == [(begin, None, 0, 2, "ANONYMOUS")]


def test_heap_blocks_and_mappings_are_in_one_order() -> None:
    b = TraceBuilder()
    for turn in range(6):
        b.alloc(0x1000 + turn * 64, 8)
        b.map(at(turn * 2), PAGE)
    b.unmap(at(0), 100 * PAGE)
    begins = table_of(b).begin
    assert (np.diff(begins.astype(np.int64)) > 0).all()
    assert table_of(b).kind.tolist() == [BlockKind.HEAP, BlockKind.ANONYMOUS] * 6


@dataclass
class Naive:
    """Each page by itself: who made it, whether it can be accessed, and whether it is the page of a file."""

    pages: dict[int, tuple[int, bool, bool]]

    def apply(self, stamp: int, op: str, span: range, flag: bool, scope: int) -> None:
        for page in span:
            if op == "map":
                self.pages[page] = (scope, flag, False)
            elif op == "file":
                self.pages[page] = (scope, flag, True)
            elif op == "unmap":
                self.pages.pop(page, None)
            elif page in self.pages:
                owner, reserved, file = self.pages[page]
                self.pages[page] = (owner if flag or not reserved else scope, flag, file)


_OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["map", "file", "unmap", "protect"]),
        st.integers(0, 15),
        st.integers(1, 8),
        st.booleans(),
    ),
    max_size=40,
)


@settings(max_examples=300, deadline=None)
@given(_OPERATIONS)
def test_the_interval_map_agrees_with_single_pages(operations: list[tuple[str, int, int, bool]]) -> None:
    b = TraceBuilder()
    naive = Naive({})
    history: list[tuple[int, dict[int, tuple[int, bool, bool]]]] = []
    for op, first, count, flag in operations:
        scope = b.scope_begin(ScopeKind.TAG, parent=0)
        span = (at(first), count * PAGE)
        flags = MapFlag.FIXED | (MapFlag.RESERVED if flag else MapFlag(0))
        if op == "unmap":
            stamp = b.unmap(*span)
        elif op == "protect":
            stamp = b.protect(*span, none=flag)
        else:
            stamp = b.map(*span, flags=flags, path="/f" if op == "file" else None)
        naive.apply(stamp, op, range(first, first + count), flag, scope)
        history.append((stamp, dict(naive.pages)))
    table = table_of(b)
    for stamp, expected in history:
        found: dict[int, tuple[int, bool, bool]] = {}
        for row in np.flatnonzero((table.begin <= stamp) & (table.end > stamp)):
            first = (int(table.address[row]) - BASE) // PAGE
            for page in range(first, first + int(table.bytes[row]) // PAGE):
                assert page not in found, "a page in two blocks"
                reserved = table.kind[row] == BlockKind.RESERVED
                found[page] = (int(table.scope[row]), bool(reserved), bool(table.file[row] >= 0))
        assert found == expected


def test_cutting_nothing_changes_nothing() -> None:
    mapping = IntervalMap()
    mapping.put(Piece(1, 10, 20, BlockKind.ANONYMOUS, False, -1, 0, 0, 0))
    assert mapping.cut(2, 20, 30) == []
    assert mapping.cut(2, 5, 10) == []
    assert mapping.cut(2, 15, 15) == []
    assert len(mapping.finish()) == 1
