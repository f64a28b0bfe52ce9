from __future__ import annotations

from collections.abc import Callable

import pytest

from etmem.analysis.context import Account
from etmem.analysis.delegates import delegates
from etmem.model.summary import DelegateInfo
from etmem.trace.tables import SegmentType
from tests.analysis.worlds import XNNPACK, Words, World, accounted

Frames = Callable[[dict[int, str]], None]


def only(found: Account) -> DelegateInfo:
    (row,) = delegates(found)
    return row


def test_a_delegates_life() -> None:
    world = World()
    with world.method_load():
        world.map(0x100000, 4096, path="/m.pte")
        blob = world.segment(0x100000, 4000, type=SegmentType.BACKEND, name=XNNPACK)
        with world.init():
            world.map(0x200000, 8192, path="/m.pte")
            world.segment(0x200000, 8000, type=SegmentType.NAMED, name="w")
            world.alloc(0x1000, 8000)
            world.unmap(0x200000, 8192)
            world.unmap(0x100000, 4096)
            world.segment_free(blob)
            world.alloc(0x2000, 50)
    with world.inference(0), world.execute():
        world.alloc(0x3000, 300)
        world.alloc(0x4000, 5)
        world.free(0x4000)
    for iteration in (1, 2):
        with world.inference(iteration), world.execute():
            world.alloc(0x4000, 5)
            world.free(0x4000)
    assert only(accounted(world)) == DelegateInfo(
        backend=XNNPACK,
        program=1,
        method="forward",
        instance=0,
        blob_bytes=4000,
        blob_released="init",
        named_data_bytes=8000,
        init_peak_bytes=4096 + 8192 + 8000,
        live_after_init_bytes=8050,
        first_execute_growth_bytes=300,
        steady_bytes=8350,
        execute_allocations=2,
        shared_with=(),
    )


@pytest.mark.parametrize(("freed_in", "expected"), [("init", "init"), ("unload", "unload"), (None, "never")])
def test_when_the_blob_goes(freed_in: str | None, expected: str) -> None:
    world = World()

    def free(now: str) -> None:
        if now == freed_in:
            world.free(0x1000)
            world.segment_free(blob)

    with world.method_load():
        world.alloc(0x1000, 400)
        blob = world.segment(0x1000, 400, type=SegmentType.BACKEND, name=XNNPACK)
        with world.init():
            free("init")
    with world.unload(), world.destroy():
        free("unload")
    assert only(accounted(world)).blob_released == expected


def test_a_blob_in_the_callers_buffer_is_never_released() -> None:
    world = World()
    world.alloc(0x1000, 4000)
    with world.method_load():
        blob = world.segment(0x1100, 400, type=SegmentType.BACKEND, name=XNNPACK)
        with world.init():
            world.segment_free(blob)
    with world.unload():
        pass
    world.free(0x1000)
    assert only(accounted(world)).blob_released == "never"


def test_a_blob_in_memory_that_nobody_saw_is_never_released() -> None:
    world = World()
    with world.method_load():
        blob = world.segment(0x1100, 400, type=SegmentType.BACKEND, name=XNNPACK)
        with world.init():
            world.segment_free(blob)
    row = only(accounted(world))
    assert (row.blob_bytes, row.blob_released) == (400, "never")


def test_growth_includes_what_it_makes_larger_for_all(named_frames: Frames) -> None:
    world = World()
    for method in ("decode", "prefill"):
        with world.method_load(method), world.init():
            world.alloc(0x1000 + 256 * len(method), 10)
    with world.inference(method="decode"), world.execute():
        world.packed(0x10000, 100, "workspace@workspace")
    with world.inference(method="prefill"), world.execute():
        world.packed(0x20000, 900, "workspace@workspace")
        world.free(0x10000)
    named_frames(world.symbols)
    decode, prefill = delegates(accounted(world, {XNNPACK: Words()}))
    assert (decode.first_execute_growth_bytes, prefill.first_execute_growth_bytes) == (100, 800)
    assert (decode.steady_bytes, prefill.steady_bytes) == (10, 10)
    assert decode.shared_with == ("prefill/XnnpackBackend[0]",)


def test_without_an_inference_steady_is_after_load() -> None:
    world = World()
    with world.method_load(), world.init():
        world.alloc(0x1000, 10)
    row = only(accounted(world))
    assert (row.steady_bytes, row.first_execute_growth_bytes, row.execute_allocations) == (10, 0, 0)
