from __future__ import annotations

from etmem.model.words import EXECUTORCH, Category
from tests.analysis.worlds import World, accounted, filed, summary


def test_a_planned_buffer_for_each_method() -> None:
    world = World()
    for method, address, size in (("prefill", 0x10000, 900), ("decode", 0x20000, 100)):
        world.alloc(address, size)
        with world.method_load(method):
            world.claim(address, size, EXECUTORCH, "planned_memory", "planned[1]")
    world.alloc(0x30000, 50)
    with world.method_load("decode", 2):
        world.claim(0x30000, 50, EXECUTORCH, "planned_memory", "planned[2]")
    rows = [(a.name, a.program, a.method, a.bytes, a.used_peak_bytes) for a in summary(world).arenas]
    assert rows == [
        ("planned[1]", 1, "prefill", 900, None),
        ("planned[1]", 1, "decode", 100, None),
        ("planned[2]", 2, "decode", 50, None),
    ]


def test_one_buffer_given_to_several_methods_is_nobodys_alone() -> None:
    world = World()
    world.alloc(0x10000, 900)
    for method, size in (("decode", 100), ("prefill", 900)):
        with world.method_load(method):
            world.claim(0x10000, size, EXECUTORCH, "planned_memory", "planned[1]")
    (row,) = summary(world).arenas
    assert (row.name, row.method, row.bytes) == ("planned[1]", None, 900)


def test_what_each_method_asked_of_the_method_allocator_and_who_in_it() -> None:
    world = World()
    with world.method_load("decode"):
        heap = world.heap("method_allocator", EXECUTORCH, "method_allocator")
        world.heap_alloc(heap, 0x1000, 10)
        with world.init(0):
            world.heap_alloc(heap, 0x2000, 100)
            world.heap_alloc(heap, 0x2100, 5)
    with world.method_load("prefill"), world.init(0):
        world.heap_alloc(heap, 0x3000, 7)
    world.heap_alloc(heap, 0x4000, 1)  # outside of any method: that of the registration
    decode, prefill = summary(world).arenas
    assert (decode.name, decode.method, decode.bytes, decode.allocations) == ("method_allocator", "decode", 116, 4)
    assert [(user.instance, user.bytes, user.allocations) for user in decode.users] == [
        ("decode/XnnpackBackend[0]", 105, 2), (None, 11, 2),
    ]  # fmt: skip
    assert (prefill.method, prefill.bytes, prefill.used_peak_bytes) == ("prefill", 7, 7)


def test_the_temp_allocators_high_water_between_resets() -> None:
    world = World()
    with world.method_load():
        heap = world.heap("temp_allocator", EXECUTORCH, "temp_allocator")
    with world.inference():
        world.heap_alloc(heap, 0x1000, 10)
        world.heap_alloc(heap, 0x1010, 30)
        world.heap_reset(heap)
        world.heap_alloc(heap, 0x1000, 25)
        world.heap_free(heap, 0x1000)
        world.heap_alloc(heap, 0x1000, 26)
        world.heap_reset(heap)
    (row,) = summary(world).arenas
    assert (row.bytes, row.used_peak_bytes, row.allocations) == (10 + 30 + 25 + 26, 40, 4)


def test_heaps_of_others_are_arenas_too_and_name_their_blocks() -> None:
    world = World()
    with world.method_load():
        heap = world.heap("pool", "delegate:Mine", "workspace")
        world.alloc(0x1000, 100)
        world.heap_alloc(heap, 0x1000, 10)
    (row,) = summary(world).arenas
    assert (row.name, row.owner, row.method, row.bytes) == ("pool", "delegate:Mine", "forward", 10)
    assert filed(accounted(world), 0x1000) == ("delegate:Mine", None, Category.WORKSPACE)
