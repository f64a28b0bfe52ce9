from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from etmem.analysis.timeline import Window, sums_at, timeline
from etmem.trace.tables import NEVER

BLOCKS = st.lists(
    st.tuples(st.integers(1, 60), st.one_of(st.integers(1, 30), st.none()), st.integers(0, 50), st.integers(0, 2)),
    max_size=40,
)
SPANS = st.tuples(st.integers(1, 60), st.integers(0, 30)).map(lambda pair: (pair[0], pair[0] + pair[1]))


def columns(rows: list[tuple[int, int | None, int, int]]):
    begin = np.array([row[0] for row in rows], np.uint64)
    end = np.array([NEVER if row[1] is None else row[0] + row[1] for row in rows], np.uint64)
    weights = np.array([row[2] for row in rows], np.int64)
    return begin, end, weights, np.array([row[3] for row in rows], np.int32)


def live(rows: list[tuple[int, int | None, int, int]], stamp: int) -> list[tuple[int, int | None, int, int]]:
    return [row for row in rows if row[0] <= stamp and (row[1] is None or stamp < row[0] + row[1])]


@given(BLOCKS, SPANS)
def test_peak_is_that_of_a_replay(rows: list[tuple[int, int | None, int, int]], span: tuple[int, int]) -> None:
    begin, end, weights, _ = columns(rows)
    replay = [sum(row[2] for row in live(rows, stamp)) for stamp in range(span[0], span[1] + 1)]
    for window in (Window(*span), Window(0, 200)):
        line = timeline(begin, end, weights, window)
        stamp, value = line.peak(*span)
        assert (stamp, value) == (span[0] + replay.index(max(replay)), max(replay))
        assert [line.at(stamp) for stamp in range(span[0], span[1] + 1)] == replay


@given(BLOCKS, st.lists(st.integers(0, 100), min_size=1, max_size=8, unique=True))
def test_sums_are_those_of_a_replay(rows: list[tuple[int, int | None, int, int]], stamps: list[int]) -> None:
    begin, end, weights, group = columns(rows)
    at = np.array(sorted(stamps), np.uint64)
    expected = [[sum(r[2] for r in live(rows, s) if r[3] == g) for s in sorted(stamps)] for g in range(3)]
    numbers = [[sum(1 for r in live(rows, s) if r[3] == g) for s in sorted(stamps)] for g in range(3)]
    assert sums_at(at, begin, end, group, 3, weights).tolist() == expected
    assert sums_at(at, begin, end, group, 3, None).tolist() == numbers


def test_pieces_that_begin_where_the_whole_ends_are_no_peak() -> None:
    begin = np.array([1, 5, 5], np.uint64)
    end = np.array([5, NEVER, NEVER], np.uint64)
    line = timeline(begin, end, np.array([100, 40, 50]), Window(0, 10))
    assert line.peak(4, 10) == (4, 100)
    assert line.peak(5, 10) == (5, 90)


def test_first_of_equal_peaks() -> None:
    begin, end = np.array([2, 6], np.uint64), np.array([4, 8], np.uint64)
    line = timeline(begin, end, np.array([7, 7]), Window(0, 10))
    assert line.peak(1, 9) == (2, 7)
