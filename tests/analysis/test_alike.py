"""Distinct columns: the same as NumPy's, sooner."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from etmem.analysis.lookup import alike

NUMBERS = st.one_of(st.integers(-2, 3), st.sampled_from([-(2**62), 2**62]))


@given(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), max_size=30))
def test_alike(columns: list[tuple[int, int, int]]) -> None:
    table = np.array(columns, np.int64).reshape(-1, 3).T
    found, place = alike(*table)
    assert list(map(tuple, found.T.tolist())) == sorted(set(columns))
    assert (found[:, place] == table).all()
