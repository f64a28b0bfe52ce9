"""Each rule of ownership, and which rule wins."""

from __future__ import annotations

from collections.abc import Callable

from etmem.analysis.owners import function_name
from etmem.model.words import EXECUTORCH, HOST, PROFILER, Category
from etmem.trace.tables import MapFlag, ScopeKind, SegmentType
from tests.analysis.worlds import XNN, XNNPACK, Words, World, accounted, filed

Frames = Callable[[dict[int, str]], None]
XNN0 = "forward/XnnpackBackend[0]"


def test_innermost_scope() -> None:
    world = World()
    world.alloc(0x1000, 10)
    with world.program_load():
        world.alloc(0x2000, 10)
    with world.method_load():
        with world.scope(ScopeKind.INSTRUCTION, "init", 0, 0):
            world.alloc(0x3000, 10)
        with world.init():
            world.alloc(0x4000, 10)
        with world.scope(ScopeKind.PROFILER):
            world.alloc(0x5000, 10)
    with world.inference():
        world.alloc(0x6000, 10)
        with world.scope(ScopeKind.INSTRUCTION, "aten::add", 0, 0):
            world.alloc(0x7000, 10)
        with world.execute():
            world.alloc(0x8000, 10)
    found = accounted(world)
    assert filed(found, 0x1000) == (HOST, None, Category.OTHER)
    assert filed(found, 0x2000) == (EXECUTORCH, None, Category.METADATA)
    assert filed(found, 0x3000) == (EXECUTORCH, None, Category.METADATA)
    assert filed(found, 0x4000) == (XNN, XNN0, Category.METADATA)
    assert filed(found, 0x5000)[0] == PROFILER
    assert filed(found, 0x6000) == (EXECUTORCH, None, Category.METADATA)
    assert filed(found, 0x7000) == (EXECUTORCH, None, Category.KERNEL_SCRATCH)
    assert filed(found, 0x8000) == (XNN, XNN0, Category.METADATA)


def test_a_tag_gives_the_category_and_what_it_is_in_the_owner() -> None:
    world = World()
    workspace = world.string("workspace")
    nonsense = world.string("no such category")
    with world.scope(ScopeKind.TAG, "mine", workspace):
        world.alloc(0x1000, 10)
    with world.method_load():
        with world.scope(ScopeKind.TAG, "kernel_scratch"):
            world.alloc(0x2000, 10)
        with world.init():
            with world.scope(ScopeKind.TAG, "tag", workspace):
                world.alloc(0x3000, 10)
            with world.scope(ScopeKind.TAG, "tag", nonsense):
                world.alloc(0x4000, 10)
    found = accounted(world)
    assert filed(found, 0x1000) == (HOST, None, Category.WORKSPACE)
    assert filed(found, 0x2000) == (EXECUTORCH, None, Category.KERNEL_SCRATCH)
    assert filed(found, 0x3000) == (XNN, XNN0, Category.WORKSPACE)
    assert filed(found, 0x4000) == (XNN, XNN0, Category.METADATA)


def test_the_description_decides_inside_a_delegate(named_frames: Frames) -> None:
    world = World()
    with world.method_load(), world.init():
        world.packed(0x1000, 10, "packed_weights", function=4)
        world.packed(0x2000, 10, "packed_weights", function=0)
        world.packed(0x3000, 10, "operator_buffers", function=2)
        world.alloc(0x4000, 10, function=4)
        world.map(0x10000, 4096)
    named_frames(world.symbols)
    found = accounted(world, {XNNPACK: Words(("posix_memalign", "realloc", "mmap"))})
    assert filed(found, 0x1000)[2] is Category.PACKED_WEIGHTS
    assert filed(found, 0x2000)[2] is Category.METADATA
    assert filed(found, 0x3000)[2] is Category.OPERATOR_BUFFERS
    assert filed(found, 0x4000)[2] is Category.METADATA
    assert filed(found, 0x10000) == (XNN, XNN0, Category.METADATA)
    assert filed(accounted(world), 0x1000) == (XNN, XNN0, Category.METADATA)


def test_a_tag_beats_the_description(named_frames: Frames) -> None:
    world = World()
    with world.method_load(), world.init(), world.scope(ScopeKind.TAG, "workspace"):
        world.packed(0x1000, 10, "packed_weights")
    named_frames(world.symbols)
    assert filed(accounted(world, {XNNPACK: Words()}), 0x1000)[2] is Category.WORKSPACE


def test_names_of_allocating_functions() -> None:
    assert [function_name(number) for number in (0, 2, 4, 8, 255)] == [
        "malloc", "realloc", "posix_memalign", "pvalloc", "mmap",
    ]  # fmt: skip


def test_instances_of_other_programs_have_their_id_in_front() -> None:
    world = World()
    for program, address in ((1, 0x1000), (2, 0x2000)):
        with world.method_load("decode", program), world.init(1):
            world.alloc(address, 10)
    found = accounted(world)
    assert filed(found, 0x1000)[1] == "decode/XnnpackBackend[1]"
    assert filed(found, 0x2000)[1] == "2:decode/XnnpackBackend[1]"


def test_an_instance_made_before_recording_has_no_name() -> None:
    world = World()
    with world.inference(), world.execute(-1):
        world.alloc(0x1000, 10)
    assert filed(accounted(world), 0x1000) == (XNN, None, Category.METADATA)


# Segments.


def test_segments_of_a_mapped_program() -> None:
    world = World()
    with world.program_load():
        world.map(0x100000, 8192, path="/m.pte")
        world.segment(0x100000, 5000, type=SegmentType.PROGRAM)
        world.map(0x200000, 8192, path="/m.pte", offset=8192)
        world.segment(0x200040, 5000, type=SegmentType.CONSTANT)
    with world.method_load():
        world.map(0x300000, 4096, path="/m.pte", offset=16384)
        blob = world.segment(0x300000, 4000, type=SegmentType.BACKEND, name=XNNPACK)
        with world.init(3):
            world.map(0x400000, 4096, path="/m.pte", offset=20480)
            world.segment(0x400010, 64, type=SegmentType.CONSTANT)
            world.segment(0x400010, 64, type=SegmentType.NAMED, name="weight")
            world.unmap(0x300000, 4096)
            world.segment_free(blob)
        world.map(0x500000, 4096, path="/m.ptd")
        world.segment(0x500000, 64, type=SegmentType.EXTERNAL)
        world.map(0x600000, 4096, path="/m.pte", flags=0)
        world.segment(0x600000, 64, type=SegmentType.MUTABLE)
    found = accounted(world)
    mine = (XNN, "forward/XnnpackBackend[3]", Category.ORIGINAL_WEIGHTS)
    assert filed(found, 0x100000) == (EXECUTORCH, None, Category.PROGRAM)
    assert filed(found, 0x200000) == (EXECUTORCH, None, Category.CONSTANTS)
    assert filed(found, 0x300000) == mine
    assert filed(found, 0x400000) == mine
    assert filed(found, 0x500000) == (EXECUTORCH, None, Category.CONSTANTS)
    assert filed(found, 0x600000) == (EXECUTORCH, None, Category.METADATA)


def test_each_blob_belongs_to_the_init_that_follows_it_on_its_thread() -> None:
    world = World()
    with world.on(7), world.method_load("other"), world.on(1000), world.method_load():
        world.alloc(0x1000, 10)
        world.segment(0x1000, 10, type=SegmentType.BACKEND, name=XNNPACK)
        with world.on(7), world.init(0):
            pass
        with world.init(0):
            pass
        world.alloc(0x2000, 10)
        world.segment(0x2000, 10, type=SegmentType.BACKEND, name=XNNPACK)
        with world.init(1):
            pass
        world.alloc(0x3000, 10)
        world.segment(0x3000, 10, type=SegmentType.BACKEND, name=XNNPACK)
    found = accounted(world)
    assert filed(found, 0x1000) == (XNN, XNN0, Category.ORIGINAL_WEIGHTS)
    assert filed(found, 0x2000) == (XNN, "forward/XnnpackBackend[1]", Category.ORIGINAL_WEIGHTS)
    assert filed(found, 0x3000) == (XNN, None, Category.ORIGINAL_WEIGHTS)


def test_a_buffer_that_holds_the_file_belongs_to_who_was_handed_most_of_it() -> None:
    def loaded_from_a_buffer(constants: int, weights: int) -> tuple[str, str | None, Category]:
        world = World()
        world.alloc(0x10000, 1000)
        with world.program_load():
            world.segment(0x10000, 100, type=SegmentType.PROGRAM)
            world.segment(0x10080, constants, type=SegmentType.CONSTANT)
        with world.method_load(), world.init():
            world.segment(0x10200, weights, type=SegmentType.CONSTANT)
            world.segment(0x10200, weights, type=SegmentType.NAMED, name="weight")
        return filed(accounted(world), 0x10000)

    assert loaded_from_a_buffer(constants=300, weights=299) == (EXECUTORCH, None, Category.CONSTANTS)
    assert loaded_from_a_buffer(constants=300, weights=301) == (XNN, XNN0, Category.ORIGINAL_WEIGHTS)


def test_named_data_inside_an_external_segment_is_counted_once() -> None:
    world = World()
    with world.method_load():
        world.alloc(0x10000, 1000)
        world.segment(0x10000, 1000, type=SegmentType.EXTERNAL)
        for index in (0, 1):
            with world.init(index):
                world.segment(0x10000 + 300 * index, 300, type=SegmentType.NAMED, name=f"w{index}")
    assert filed(accounted(world), 0x10000) == (XNN, None, Category.ORIGINAL_WEIGHTS)


# Heaps.


def test_what_an_allocator_hands_out_is_the_allocators_whoever_asks() -> None:
    world = World()
    with world.method_load():
        heap = world.heap("method_allocator", EXECUTORCH, "method_allocator")
        with world.init():
            world.alloc(0x1000, 72)
            world.heap_alloc(heap, 0x1008, 64)
    assert filed(accounted(world), 0x1000) == (EXECUTORCH, None, Category.METHOD_ALLOCATOR)


def test_what_a_heap_hands_out_of_unknown_memory_is_a_block() -> None:
    world = World()
    with world.method_load():
        heap = world.heap("temp_allocator", EXECUTORCH, "temp_allocator")
        world.heap_alloc(heap, 0x9000, 64)
        world.heap_alloc(heap, 0x9040, 36)
        world.heap_reset(heap)
        world.heap_alloc(heap, 0x9000, 8)
    found = accounted(world)
    assert filed(found, 0x9040) == (EXECUTORCH, None, Category.TEMP_ALLOCATOR)
    assert found.ledger.total.peak(0, found.last_stamp)[1] == 100
    assert found.ledger.total.at(found.last_stamp) == 8


# Claims.


def test_a_claim_holds_back_to_the_allocation() -> None:
    world = World()
    world.alloc(0x1000, 100)
    world.free(0x1000)
    begin = world.alloc(0x1000, 200)
    world.alloc(0x2000, 30)
    with world.method_load():
        world.claim(0x1010, 64, EXECUTORCH, "planned_memory", "planned[1]")
    with world.inference():
        pass
    world.claim(0x2000, 30, HOST, "inputs_outputs", "input")
    found = accounted(world)
    assert filed(found, 0x1000) == (EXECUTORCH, None, Category.PLANNED_MEMORY)
    assert filed(found, 0x2000) == (HOST, None, Category.INPUTS_OUTPUTS)
    assert [int(b) for b in found.blocks.begin] == [begin, begin + 1]


def test_the_hosts_claim_takes_nothing_from_others() -> None:
    world = World()
    with world.method_load():
        world.alloc(0x1000, 100)
        world.claim(0x1000, 100, EXECUTORCH, "planned_memory", "planned[1]")
        with world.init():
            world.alloc(0x2000, 100)
    world.alloc(0x3000, 100)
    for address in (0x1040, 0x2000, 0x3000):
        world.claim(address, 10, HOST, "inputs_outputs", "output")
    found = accounted(world)
    assert filed(found, 0x1000) == (EXECUTORCH, None, Category.PLANNED_MEMORY)
    assert filed(found, 0x2000) == (XNN, XNN0, Category.METADATA)
    assert filed(found, 0x3000) == (HOST, None, Category.INPUTS_OUTPUTS)


def test_executorchs_claim_beats_an_earlier_one_of_the_host() -> None:
    world = World()
    with world.method_load():
        pass
    world.alloc(0x1000, 100)
    world.claim(0x1000, 10, HOST, "inputs_outputs", "input")
    world.claim(0x1040, 10, EXECUTORCH, "planned_memory", "planned[1]")
    assert filed(accounted(world), 0x1000) == (EXECUTORCH, None, Category.PLANNED_MEMORY)


def test_planned_memory_in_a_block_that_heaps_use_too_is_planned() -> None:
    world = World()
    world.alloc(0x1000, 1000)
    with world.method_load():
        heap = world.heap("method_allocator", EXECUTORCH, "method_allocator")
        world.heap_alloc(heap, 0x1000, 64)
        world.claim(0x1100, 500, EXECUTORCH, "planned_memory", "planned[1]")
    assert filed(accounted(world), 0x1000)[2] is Category.PLANNED_MEMORY


# Kinds of mappings.


def test_private_file_shared_and_reserved() -> None:
    world = World()
    with world.method_load(), world.init():
        world.alloc(0x1000, 10)
        world.map(0x10000, 4096)
        world.map(0x20000, 8192, path="/cache")
        world.map(0x30000, 16384, flags=MapFlag.SHARED)
        world.map(0x40000, 32768, flags=MapFlag.RESERVED)
    found = accounted(world)
    moment = found.moment(found.last_stamp)
    assert (moment.private_bytes, moment.file_bytes) == (10 + 4096, 8192)
    (row,) = moment.owners[0].categories
    assert (row.private_bytes, row.file_bytes, row.blocks) == (4106, 8192, 3)
