"""RSS line by line. Pages are 4096 bytes (0x1000)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from etmem.analysis.coverage import Coverage, Remainder, union
from etmem.delegates import descriptions
from etmem.model.summary import Balance
from etmem.model.words import EXECUTORCH, IssueCode, Source
from etmem.trace.tables import SegmentType
from tests.analysis.worlds import World, summary

PAGE = 0x1000
PRESENT, FILE, ZERO = 8, 4, 32


def maps(*lines: tuple[int, int, str, str]) -> str:
    return "".join(f"{start:x}-{end:x} {perms} 00000000 00:00 0 {path}\n" for start, end, perms, path in lines)


def pages(*ranges: tuple[int, int]) -> list[tuple[int, int, int]]:
    return [(start, end, PRESENT) for start, end in ranges]


def balance(world: World, rss: int, text: str, ranges: Sequence[tuple[int, int, int]]) -> Balance:
    """Of a snapshot at the end of a method load."""
    world.snapshot("method_load", rss_bytes=rss, maps=text, pages=ranges)
    (found,) = summary(world).balances
    assert found.rss_bytes == rss == sum(line.bytes for line in found.lines) + found.unaccounted_bytes
    return found


def lines(found: Balance) -> dict[str, int]:
    return {line.line: line.bytes for line in found.lines}


def test_a_block_has_the_resident_bytes_that_it_covers() -> None:
    world = World()
    with world.method_load():
        world.alloc(0x10_0F00, 0x300)  # 0x100 in a resident page, 0x200 in one that is not
        with world.init():
            world.alloc(0x10_3010, 0x20)
    world.alloc(0x10_3100, 0x40)
    text = maps((0x10_0000, 0x10_8000, "rw-p", "[heap]"))
    found = balance(world, 2 * PAGE, text, pages((0x10_0000, 0x10_1000), (0x10_3000, 0x10_4000)))
    assert lines(found) == {
        EXECUTORCH: 0x100,
        "delegate:XnnpackBackend": 0x20,
        "host": 0x40,
        "retained by malloc": 2 * PAGE - 0x160,
    }
    assert {line.line: line.source for line in found.lines}["retained by malloc"] is Source.INFERRED
    assert found.unaccounted_bytes == 0


def test_the_programs_file_and_files_of_the_application() -> None:
    world = World()
    world.map(0x40_0000, 2 * PAGE, path="/data.npz")
    with world.program_load():
        world.map(0x20_0000, 4 * PAGE, path="/m.pte")
        world.segment(0x20_0000, 10000, type=SegmentType.PROGRAM)
    with world.method_load():
        pass
    text = maps(
        (0x20_0000, 0x20_4000, "r--s", "/m.pte"),
        (0x30_0000, 0x30_2000, "r--p", "/m.pte"),
        (0x40_0000, 0x40_2000, "r--p", "/data.npz"),
        (0x50_0000, 0x50_1000, "r--p", "/usr/lib/locale/archive"),
    )
    resident = pages((0x20_0000, 0x20_3000), (0x30_0000, 0x30_1000), (0x40_0000, 0x40_1000), (0x50_0000, 0x50_1000))
    found = balance(world, 6 * PAGE, text, resident)
    assert lines(found) == {"program file": 4 * PAGE, "host": PAGE, "other libraries": PAGE}


def test_a_delegates_cache_file_is_the_delegates() -> None:
    world = World()
    with world.method_load(), world.init():
        world.map(0x20_0000, 4 * PAGE, path="/packed.cache")
    found = balance(
        world, 2 * PAGE, maps((0x20_0000, 0x20_4000, "rw-s", "/packed.cache")), pages((0x20_0000, 0x20_2000))
    )
    assert lines(found) == {"delegate:XnnpackBackend": 2 * PAGE}


def test_libraries_that_a_description_names_are_its_delegate_s_wherever_they_were_loaded() -> None:
    """GIVEN a library from before the delegate's init THEN its pages are the delegate's where one of it ran."""
    text = maps((0x7000_0000, 0x7000_2000, "r-xp", "/lib/libopenvino.so.2500"))
    for backend, line in (("OpenvinoBackend", "libraries of OpenvinoBackend"), ("XnnpackBackend", "other libraries")):
        world = World()
        world.module(0x7000_0000, 2 * PAGE, "/lib/libopenvino.so.2500")
        with world.method_load(), world.init(backend=backend):
            pass
        world.snapshot("method_load", rss_bytes=2 * PAGE, maps=text, pages=pages((0x7000_0000, 0x7000_2000)))
        (found,) = summary(world, descriptions=descriptions()).balances
        assert lines(found) == {line: 2 * PAGE}


def test_libraries_with_their_zeroed_data() -> None:
    world = World()
    with world.method_load(), world.init(backend="OpenvinoBackend"):
        world.module(0x7000_0000, 4 * PAGE, "/lib/libopenvino.so")
    world.module(0x7100_0000, 4 * PAGE, "/lib/libc.so")
    text = maps(
        (0x7000_0000, 0x7000_2000, "r-xp", "/lib/libopenvino.so"),
        (0x7000_2000, 0x7000_3000, "rw-p", "/lib/libopenvino.so"),
        (0x7000_3000, 0x7000_4000, "rw-p", ""),
        (0x7100_0000, 0x7100_2000, "r-xp", "/lib/libc.so"),
        (0x7100_2000, 0x7100_4000, "rw-p", ""),
        (0x7200_0000, 0x7200_1000, "rw-p", "/app/unrecorded"),
        (0x7200_1000, 0x7200_2000, "rw-p", ""),
    )
    resident = pages((0x7000_0000, 0x7000_4000), (0x7100_0000, 0x7100_3000), (0x7200_0000, 0x7200_2000))
    found = balance(world, 9 * PAGE, text, resident)
    assert lines(found) == {"libraries of OpenvinoBackend": 4 * PAGE, "other libraries": 5 * PAGE}


def test_stacks() -> None:
    world = World()
    world.thread(50, stack_pointer=0x7E00_5F00)
    world.thread(51, stack_pointer=0x7F00_5F00)
    world.thread_end(51)
    with world.method_load():
        pass
    text = maps(
        (0x7E00_0000, 0x7E00_6000, "rw-p", ""),
        (0x7F00_0000, 0x7F00_6000, "rw-p", ""),
        (0x7FFF_0000, 0x7FFF_2000, "rw-p", "[stack]"),
    )
    resident = pages((0x7E00_4000, 0x7E00_6000), (0x7F00_5000, 0x7F00_6000), (0x7FFF_1000, 0x7FFF_2000))
    found = balance(world, 4 * PAGE, text, resident)
    assert lines(found) == {"stacks": 3 * PAGE}
    assert found.unaccounted_bytes == PAGE  # the stack of a thread that has ended


def test_the_profiler() -> None:
    world = World()
    world.note("agent.path", "/lib/libetmem.so")
    world.note("hooks.path", "/cache/etmem-hooks.so")
    world.note("trace.path", "/tmp/run.etmem")
    world.own(0x60_0000, 2 * PAGE, "arena")
    with world.method_load():
        world.alloc(0x60_1000, 0x100)  # a block in what the arena was before
    text = maps(
        (0x10_0000, 0x10_1000, "r-xp", "/lib/libetmem.so"),
        (0x20_0000, 0x20_1000, "r-xp", "/cache/etmem-hooks.so"),
        (0x30_0000, 0x30_1000, "rw-s", "/tmp/run.etmem"),
        (0x60_0000, 0x60_4000, "rw-p", ""),
    )
    resident = pages(*((start, start + PAGE) for start in (0x10_0000, 0x20_0000, 0x30_0000)), (0x60_0000, 0x60_3000))
    found = balance(world, 6 * PAGE, text, resident)
    assert lines(found) == {EXECUTORCH: 0x100, "profiler": 5 * PAGE - 0x100, "retained by malloc": PAGE}


def test_what_malloc_keeps() -> None:
    world = World()
    arena = 0x7F_0000_0000
    world.alloc(arena + 0x100, 64)
    with world.method_load():
        world.alloc(0x100_0010, 0x40000)  # large: in a mapping of its own
        world.map(0x200_0000, 2 * PAGE)
        world.free(arena + 0x100)
    text = maps(
        (0x100_0000, 0x105_0000, "rw-p", ""),
        (0x200_0000, 0x200_4000, "rw-p", ""),
        (arena, arena + 0x21000, "rw-p", ""),
    )
    resident = pages((0x100_0000, 0x104_3000), (0x200_0000, 0x200_4000), (arena, arena + 2 * PAGE))
    found = balance(world, 0x43000 + 6 * PAGE, text, resident)
    assert lines(found) == {
        EXECUTORCH: 0x40000 + 2 * PAGE,
        # Its arena, although all is freed; and the header and the last page's rest of the large block.
        "retained by malloc": 2 * PAGE + 0x1000,
    }
    # Two pages behind the large block and two behind the mapping that nobody is known to have made.
    assert found.unaccounted_bytes == 4 * PAGE


def test_a_mapping_that_an_allocator_carves_is_malloc_s() -> None:
    world = World()
    with world.method_load():
        world.alloc(0x300_0100, 0x40)
    found = balance(
        world, 2 * PAGE, maps((0x300_0000, 0x310_0000, "rw-p", "[anon:jemalloc]")), pages((0x300_0000, 0x300_2000))
    )
    assert lines(found) == {EXECUTORCH: 0x40, "retained by malloc": 2 * PAGE - 0x40}


def test_malloc_keeps_no_more_than_libc_says() -> None:
    world = World()
    with world.method_load():
        world.alloc(0x10_0000, 0x1000)
    text, resident = maps((0x10_0000, 0x11_0000, "rw-p", "[heap]")), pages((0x10_0000, 0x10_8000))
    world.snapshot("method_load", rss_bytes=8 * PAGE, maps=text, pages=resident, malloc_arena_bytes=0x1000 + 1000)
    (found,) = summary(world).balances
    assert lines(found) == {EXECUTORCH: 0x1000, "retained by malloc": 1050}
    assert found.unaccounted_bytes == 7 * PAGE - 1050


def test_the_zero_page_and_the_kernels_own_are_not_resident() -> None:
    world = World()
    with world.method_load():
        world.alloc(0x10_0000, 3 * PAGE)
    text = maps(
        (0x10_0000, 0x10_8000, "rw-p", "[heap]"),
        (0x7FFF_0000, 0x7FFF_1000, "r--p", "[vvar]"),
        (0x7FFF_1000, 0x7FFF_2000, "r-xp", "[vdso]"),
        (0xFFFF_FFFF_FF60_0000, 0xFFFF_FFFF_FF60_1000, "--xp", "[vsyscall]"),
    )
    ranges = [
        (0x10_0000, 0x10_1000, PRESENT),
        (0x10_1000, 0x10_2000, PRESENT | ZERO),
        (0x10_2000, 0x10_3000, 1),
        (0x7FFF_0000, 0x7FFF_1000, PRESENT),
        (0x7FFF_1000, 0x7FFF_2000, PRESENT),
    ]
    found = balance(world, 2 * PAGE, text, ranges)
    assert lines(found) == {EXECUTORCH: PAGE, "other libraries": PAGE}


def test_a_block_inside_another_has_taken_its_place() -> None:
    world = World()
    world.map(0x20_0000, 2 * PAGE)
    with world.method_load():
        world.alloc(0x20_0800, PAGE)  # the mapping's munmap was not seen
    found = balance(world, 2 * PAGE, maps((0x20_0000, 0x20_2000, "rw-p", "")), pages((0x20_0000, 0x20_2000)))
    assert lines(found) == {"host": 0x800, EXECUTORCH: PAGE, "retained by malloc": 0x800}


def test_which_snapshots() -> None:
    def at(*names: str, inferences: int) -> list[tuple[str, int]]:
        """The snapshots taken, numbered by their RSS."""
        world = World()
        for method in ("a", "b"):
            with world.method_load(method):
                pass
            world.snapshot("method_load", rss_bytes=len(method) + ord(method), pages=[])
        for iteration in range(inferences):
            with world.inference(iteration):
                pass
            if iteration < len(names):
                world.snapshot(names[iteration], rss_bytes=iteration, pages=[])
        for number, name in enumerate(names[inferences:]):
            world.snapshot(name, rss_bytes=100 + number, pages=[])
        return [(row.at, row.rss_bytes) for row in summary(world).balances]

    load = ("load", 1 + ord("b"))
    assert at(inferences=0) == [load]
    assert at("inference", inferences=1) == [load, ("first_inference", 0), ("last_inference", 0)]
    assert at("inference", "inference", inferences=2) == [load, ("first_inference", 0), ("last_inference", 1)]
    assert at("inference", "x", "unload", "exit", inferences=2) == [
        load, ("first_inference", 0), ("last_inference", 100),
    ]  # fmt: skip
    assert at("inference", "x", "exit", inferences=2) == [load, ("first_inference", 0), ("last_inference", 100)]


def test_without_pages_there_is_no_balance_but_an_issue() -> None:
    world = World()
    with world.method_load():
        pass
    world.snapshot("method_load", rss_bytes=5, maps="", pages=None)
    found = summary(world)
    assert found.balances == ()
    assert IssueCode.RESIDENCY_UNAVAILABLE in [issue.code for issue in found.issues]


RANGES = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 10)), max_size=6)


def coverage(ranges: list[tuple[int, int]]) -> tuple[Coverage, set[int]]:
    covered = {byte for start, size in ranges for byte in range(start, start + size)}
    starts = np.array(sorted(byte for byte in covered if byte - 1 not in covered), np.int64)
    ends = np.array(sorted(byte + 1 for byte in covered if byte + 1 not in covered), np.int64)
    return Coverage(starts, ends), covered


@given(RANGES, RANGES, st.integers(0, 80), st.integers(0, 20))
def test_coverage_counts_bytes(one: list[tuple[int, int]], other: list[tuple[int, int]], start: int, size: int) -> None:
    (first, first_bytes), (second, second_bytes) = coverage(one), coverage(other)
    span = (np.array([start], np.int64), np.array([start + size], np.int64))
    asked = set(range(start, start + size))
    assert first.between(*span).tolist() == [len(first_bytes & asked)]
    assert first.within(second).between(*span).tolist() == [len(first_bytes & second_bytes & asked)]
    assert first.outside(second).between(*span).tolist() == [len((first_bytes - second_bytes) & asked)]
    assert first.total == len(first_bytes)
    assert Remainder(first, second).between(*span).tolist() == [len((first_bytes - second_bytes) & asked)]
    split = first.split(span[0])
    assert split.total == first.total
    assert not any(a < start < b for a, b in zip(split.starts, split.ends, strict=True))


@given(RANGES)
def test_a_union_is_disjoint(ranges: list[tuple[int, int]]) -> None:
    starts = np.array([start for start, _ in ranges], np.int64)
    ends = np.array([start + size for start, size in ranges], np.int64)
    found = union(starts, ends)
    assert (found.ends[:-1] <= found.starts[1:]).all()
    assert {byte for a, b in zip(found.starts, found.ends, strict=True) for byte in range(a, b)} == coverage(ranges)[1]
