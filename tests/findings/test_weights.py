"""Findings about weights, on small traces."""

from __future__ import annotations

from dataclasses import replace

import pytest

from etmem.analysis.findings import findings
from etmem.analysis.findings_weights import double_weights, largest_part, original_kept, packed_twice
from etmem.model.words import FindingCode
from etmem.trace.tables import ScopeKind, SegmentType
from tests.analysis.worlds import OPTIONS, TARGET, XNN, World

KIB = 1024
POSIX_MEMALIGN = 4
CREATE = "xnn_create_fully_connected_nc_f32"
RESERVE = "_ZN10executorch8backends7xnnpack8delegate15XNNWeightsCache18reserve_space_heapEm"


def load(world: World, name: str, weights: list[int], *, base: int, keep: bool = False, cache: bool = False) -> None:
    """One delegate's init: originals are mapped one by one, packed one by one, then unmapped."""
    address = base
    mapped = []
    for index, size in enumerate(weights):
        world.map(address, size, path="m.pte", offset=index * 0x100_0000)
        segment = world.segment(address, size, type=SegmentType.NAMED, name=f"{name}{index}")
        mapped.append((address, size, segment))
        address += 0x100_0000
    for index, size in enumerate(weights):
        if not cache:
            world.packed(address, size + 64, CREATE, function=POSIX_MEMALIGN)
        elif base == 0x1000_0000 or index >= len(weights):
            world.packed(address, size + 64, RESERVE)
        address += 0x100_0000
    for start, size, segment in [] if keep else mapped:
        world.segment_free(segment)
        world.unmap(start, size)


def test_originals_and_packed_copies_at_the_load_peak(told):
    """GIVEN one delegate of three equal weights THEN all are double, and three delegates would save two."""
    world = World()
    with world.program_load():
        pass
    with world.method_load(), world.init():
        load(world, "w", [256 * KIB] * 3, base=0x1000_0000)
    (found,) = double_weights(told(world))
    assert (found.owner, found.bytes, found.saving_bytes) == (XNN, 768 * KIB, 512 * KIB)
    assert "XnnpackBackend[0]" in found.advice
    peak = 2 * 768 * KIB + 3 * 64
    assert found.detail["load_peak_bytes"] == peak
    assert f"{(peak - 512 * KIB) / 2**20:.1f} MiB" in found.advice


def test_one_large_weight_is_not_split(told):
    world = World()
    with world.method_load(), world.init():
        load(world, "w", [512 * KIB, 1 * KIB], base=0x1000_0000)
    (found,) = double_weights(told(world))
    assert (found.bytes, found.saving_bytes) == (513 * KIB, 0)
    assert "one weight is most of it" in found.advice


def test_the_largest_delegate_counts(told):
    """GIVEN a delegate of two weights after one of one THEN only what is live at the peak is double."""
    world = World()
    with world.method_load():
        with world.init(0):
            load(world, "a", [256 * KIB], base=0x1000_0000)
        with world.init(1):
            load(world, "b", [256 * KIB] * 2, base=0x3000_0000)
    (found,) = double_weights(told(world))
    assert (found.bytes, found.saving_bytes) == (512 * KIB, 256 * KIB)
    assert found.detail["instance"] == "forward/XnnpackBackend[1]"


def test_small_weights_are_no_remark(told):
    world = World()
    with world.method_load(), world.init():
        load(world, "w", [4 * KIB] * 3, base=0x1000_0000)
        world.alloc(0x9000_0000, 1024 * KIB)
    assert double_weights(told(world)) == ()


def test_originals_that_stay_are_kept_not_double(told):
    world = World()
    with world.method_load(), world.init():
        load(world, "w", [256 * KIB] * 2, base=0x1000_0000, keep=True)
    with world.inference(), world.execute():
        pass
    mapped = told(world)
    assert double_weights(mapped) == ()
    (found,) = original_kept(mapped)
    assert (found.bytes, found.saving_bytes, found.owner) == (512 * KIB, None, XNN)
    assert found.detail == {"private_bytes": 0, "file_bytes": 512 * KIB}
    buffered = replace(OPTIONS, target=replace(TARGET, loader="buffer"))
    (found,) = original_kept(told(world, options=buffered))
    assert found.saving_bytes == 512 * KIB
    assert "mmap" in found.advice


def test_weights_that_are_freed_are_not_kept(told):
    world = World()
    with world.method_load(), world.init():
        load(world, "w", [256 * KIB] * 2, base=0x1000_0000)
    with world.inference(), world.execute():
        pass
    assert original_kept(told(world)) == ()


def test_an_init_that_never_ended_has_kept_nothing_yet(told):
    world = World()
    world.scope_begin(ScopeKind.METHOD_LOAD, "forward", 1)
    world.scope_begin(ScopeKind.DELEGATE, "XnnpackBackend", 0, 0)
    load(world, "w", [256 * KIB] * 2, base=0x1000_0000, keep=True)
    found = told(world)
    assert original_kept(found) == ()
    (delegate,) = found.delegates
    assert delegate.init_peak_bytes > 512 * KIB
    assert (delegate.live_after_init_bytes, delegate.steady_bytes) == (0, 0)


def two_methods(second_name: str, *, cache: bool = False) -> World:
    world = World()
    with world.method_load("prefill"), world.init():
        load(world, "w", [256 * KIB, 128 * KIB], base=0x1000_0000, cache=cache)
    with world.method_load("decode"), world.init():
        load(world, second_name, [256 * KIB, 128 * KIB], base=0x3000_0000, cache=cache)
    return world


def test_the_same_names_packed_by_two_methods(told):
    (found,) = packed_twice(told(two_methods("w")))
    assert found.bytes == found.saving_bytes == 384 * KIB + 2 * 64
    assert found.detail["blocks"] == 2
    assert "prefill and decode each" in found.advice
    assert "XnnpackBackend:weight_cache_enabled=true" in found.advice


def test_other_names_of_equal_size_are_other_weights(told):
    assert packed_twice(told(two_methods("v"))) == ()


def test_a_weight_cache_packs_once(told):
    assert packed_twice(told(two_methods("w", cache=True))) == ()


def test_the_largest_saving_comes_first(told):
    found = findings(told(two_methods("w")))
    assert [finding.code for finding in found] == [FindingCode.PACKED_TWICE, FindingCode.DOUBLE_WEIGHTS]
    assert found[0].saving_bytes >= found[1].saving_bytes


@pytest.mark.parametrize(
    ("weights", "parts", "largest"),
    [
        ([], 3, 0),
        ([5], 3, 5),
        ([1, 1, 1, 1], 3, 2),
        ([1, 1, 1], 3, 1),
        ([9, 1, 1, 1], 2, 9),
        ([1, 2, 3, 4, 5, 6], 3, 9),
        ([2, 2, 2], 1, 6),
    ],
)
def test_cutting_weights_evenly(weights, parts, largest):
    assert largest_part(weights, parts) == largest
