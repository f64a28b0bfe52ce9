"""Which instances share a workspace or a weight cache, from evidence alone."""

from __future__ import annotations

from collections.abc import Callable

from etmem.analysis.context import Account
from etmem.model.words import Category
from etmem.trace.tables import SegmentType
from tests.analysis.worlds import XNN, XNNPACK, Words, World, accounted, filed

Frames = Callable[[dict[int, str]], None]
WORKSPACE, CACHED = "workspace@workspace", "packed_weights@weight_cache"


def partners(world: World, named_frames: Frames) -> tuple[Account, dict[str, list[str]]]:
    named_frames(world.symbols)
    found = accounted(world, {XNNPACK: Words()})
    label = {index: instance.label for index, instance in enumerate(found.instances)}
    shared = {label[one]: sorted(label[other] for other in others) for one, others in found.sharing.partners.items()}
    return found, shared


def load(world: World, count: int, method: str = "forward", program: int = 1) -> None:
    with world.method_load(method, program):
        for index in range(count):
            with world.init(index):
                pass


def test_one_block_that_all_execute_with_is_everybodys(named_frames: Frames) -> None:
    world = World()
    load(world, 3)
    with world.inference():
        with world.execute(0):
            world.packed(0x1000, 100, WORKSPACE)
        for index in (1, 2):
            with world.execute(index):
                pass
    found, shared = partners(world, named_frames)
    first, second, third = (f"forward/XnnpackBackend[{index}]" for index in range(3))
    assert shared == {first: [second, third], second: [first, third], third: [first, second]}
    assert filed(found, 0x1000) == (XNN, None, Category.WORKSPACE)


def test_who_runs_before_the_workspace_exists_uses_it_later(named_frames: Frames) -> None:
    world = World()
    load(world, 2)
    for iteration in (0, 1):
        with world.inference(iteration):
            with world.execute(0):
                pass
            with world.execute(1):
                if iteration == 0:
                    world.packed(0x1000, 100, WORKSPACE)
    _, shared = partners(world, named_frames)
    assert shared["forward/XnnpackBackend[0]"] == ["forward/XnnpackBackend[1]"]


def test_the_only_user_keeps_its_block(named_frames: Frames) -> None:
    world = World()
    load(world, 1)
    with world.inference(), world.execute(0):
        world.packed(0x1000, 100, WORKSPACE)
    found, shared = partners(world, named_frames)
    assert shared == {"forward/XnnpackBackend[0]": []}
    assert filed(found, 0x1000) == (XNN, "forward/XnnpackBackend[0]", Category.WORKSPACE)


def test_blocks_that_live_together_are_each_ones_own(named_frames: Frames) -> None:
    world = World()
    load(world, 2)
    with world.inference():
        for index in (0, 1):
            with world.execute(index):
                world.packed(0x1000 + 0x1000 * index, 100, WORKSPACE)
    found, shared = partners(world, named_frames)
    assert not any(shared.values())
    assert filed(found, 0x2000) == (XNN, "forward/XnnpackBackend[1]", Category.WORKSPACE)


def test_who_frees_anothers_block_to_make_it_larger_shares_it(named_frames: Frames) -> None:
    world = World()
    load(world, 1, "decode")
    load(world, 1, "prefill")
    with world.inference(method="decode"), world.execute(0):
        world.packed(0x1000, 100, WORKSPACE)
    with world.inference(method="prefill"), world.execute(0):
        world.packed(0x2000, 900, WORKSPACE)
        world.free(0x1000)
    found, shared = partners(world, named_frames)
    assert shared["decode/XnnpackBackend[0]"] == ["prefill/XnnpackBackend[0]"]
    assert filed(found, 0x1000)[1] is None
    assert filed(found, 0x2000)[1] is None


def test_an_address_that_another_takes_is_no_free(named_frames: Frames) -> None:
    world = World()
    load(world, 2)
    with world.inference():
        for index in (0, 1):
            with world.execute(index):
                world.packed(0x1000, 100, WORKSPACE)
    _, shared = partners(world, named_frames)
    assert not any(shared.values())


def test_with_a_workspace_per_program_the_nearest_is_used(named_frames: Frames) -> None:
    world = World()
    load(world, 2, program=1)
    load(world, 2, program=2)
    for program in (1, 2):
        with world.inference(program=program):
            with world.execute(0):
                world.packed(0x1000 * program, 100, WORKSPACE)
            with world.execute(1):
                pass
    _, shared = partners(world, named_frames)
    assert shared["forward/XnnpackBackend[1]"] == ["forward/XnnpackBackend[0]"]
    assert shared["2:forward/XnnpackBackend[1]"] == ["2:forward/XnnpackBackend[0]"]


def test_who_needs_none_while_others_have_their_own_shares_none(named_frames: Frames) -> None:
    world = World()
    load(world, 3)
    with world.inference():
        for index in (0, 1, 2):
            with world.execute(index):
                if index < 2:
                    world.packed(0x1000 + 0x1000 * index, 100, WORKSPACE)
    _, shared = partners(world, named_frames)
    assert "forward/XnnpackBackend[2]" not in shared


def test_a_weight_cache_belongs_to_all_that_did_not_pack_for_themselves(named_frames: Frames) -> None:
    world = World()
    for method, program in (("a", 1), ("b", 1), ("c", 1)):
        with world.method_load(method, program), world.init():
            world.map(0x100000, 4096, path="/m.pte")
            world.segment(0x100000, 1000, type=SegmentType.NAMED, name="w")
            if method == "a":
                world.packed(0x1000, 1000, CACHED)
            if method == "c":
                world.packed(0x3000, 1000, "packed_weights")
            world.packed(0x10000 + 16 * ord(method), 16, "packed_weights")
            world.unmap(0x100000, 4096)
    found, shared = partners(world, named_frames)
    assert shared == {"a/XnnpackBackend[0]": ["b/XnnpackBackend[0]"], "b/XnnpackBackend[0]": ["a/XnnpackBackend[0]"]}
    assert filed(found, 0x1000) == (XNN, None, Category.PACKED_WEIGHTS)
    assert filed(found, 0x3000) == (XNN, "c/XnnpackBackend[0]", Category.PACKED_WEIGHTS)
