from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from etmem.analysis.lookup import containing
from etmem.trace.blocks import blocks
from etmem.trace.tables import Blocks
from etmem.trace.writer import TraceBuilder

STEPS = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 40), st.booleans()), max_size=60)


def disjoint_blocks(steps: list[tuple[int, int, bool]]) -> Blocks:
    """Ten places 64 bytes apart, each allocated and freed over and over."""
    world = TraceBuilder()
    live: set[int] = set()
    for place, size, free in steps:
        if place in live and free:
            world.free(1000 + 64 * place)
            live.discard(place)
        elif place not in live:
            world.alloc(1000 + 64 * place, size)
            live.add(place)
    return blocks(world.trace())[0]


@given(STEPS, st.lists(st.tuples(st.integers(990, 1700), st.integers(0, 70)), max_size=40))
def test_finds_the_live_block_that_holds_the_address(
    steps: list[tuple[int, int, bool]], queries: list[tuple[int, int]]
) -> None:
    found = disjoint_blocks(steps)

    def by_hand(address: int, stamp: int) -> int:
        for row in range(len(found)):
            start, size = int(found.address[row]), int(found.bytes[row])
            if start <= address < start + size and int(found.begin[row]) <= stamp < int(found.end[row]):
                return row
        return -1

    addresses = np.array([address for address, _ in queries], np.uint64)
    stamps = np.array([stamp for _, stamp in queries], np.uint64)
    assert containing(found, addresses, stamps).tolist() == [by_hand(*query) for query in queries]


def test_no_blocks_and_no_queries() -> None:
    nothing = np.empty(0, np.uint64)
    none = disjoint_blocks([])
    assert containing(none, np.array([5], np.uint64), np.array([5], np.uint64)).tolist() == [-1]
    assert containing(disjoint_blocks([(1, 8, False)]), nothing, nothing).tolist() == []
