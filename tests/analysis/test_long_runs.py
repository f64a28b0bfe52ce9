"""What a long run must not cost or lose: figures by phase in one pass, and every block for those who list them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from etmem.analysis.accounting import account, every_block
from etmem.analysis.context import Span
from etmem.analysis.instructions import _within
from etmem.model.words import PhaseKind
from etmem.trace.tables import Scope, ScopeKind
from tests.analysis.worlds import OPTIONS, World


def span(number: int, begin: int, end: int) -> Span:
    scope = Scope(number, 0, ScopeKind.INFERENCE, "forward", 1, 1, number, 0, begin, end, begin, end, failed=False)
    return Span(scope, PhaseKind.INFERENCE, begin, end)


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 12)), max_size=6),
    st.lists(st.tuples(st.integers(0, 45), st.integers(-5, 9)), max_size=30),
)
def test_sums_by_phase(phases: list[tuple[int, int]], freed: list[tuple[int, int]]) -> None:
    """GIVEN phases that may overlap, as those of several threads do THEN each has what lies in it."""
    spans = [span(number, begin, begin + length) for number, (begin, length) in enumerate(phases, 1)]
    stamps = np.array([stamp for stamp, _ in freed], np.int64)
    sizes = np.array([size for _, size in freed], np.int64)
    expected = []
    for one in spans:
        inside = [size for stamp, size in freed if one.begin < stamp <= one.end]
        expected += [(one, sum(inside))] if inside else []
    assert list(_within(spans, stamps, sizes)) == expected


def many_alike() -> World:
    """In an inference more blocks that are like no other than blocks that are alike."""
    world = World()
    with world.inference():
        for at, size in enumerate((16, 16, 100, 200, 300, 400, 500)):
            world.alloc(0x1000 * (at + 1), size)
            world.free(0x1000 * (at + 1))
        world.alloc(0x9000, 8)
    return world


def test_where_folding_saves_little_nothing_is_folded() -> None:
    found = account(many_alike().trace(), replace(OPTIONS, fold_from=1), {}, {})
    assert not len(found.ledger.brief)
    assert sorted(found.blocks.bytes.tolist()) == [8, 16, 16, 100, 200, 300, 400, 500]
    assert not found.blocks.folded.any()
    assert found.blocks.address.tolist().count(0) == 1
    whole = every_block(found)
    assert whole.blocks.address.tolist() == [0x1000 * at for at in (1, 2, 3, 4, 5, 6, 7, 9)]


def test_where_it_saves_much_every_block_can_still_be_had() -> None:
    world = World()
    with world.inference():
        for at in range(50):
            world.alloc(0x1000 * (at + 1), 16)
            world.free(0x1000 * (at + 1))
    found = account(world.trace(), replace(OPTIONS, fold_from=1), {}, {})
    assert len(found.blocks) < 5
    assert int(found.blocks.count.sum()) == 50
    assert every_block(found).blocks.address.tolist() == [0x1000 * (at + 1) for at in range(50)]
    assert every_block(every_block(found)).options.fold_from is None
