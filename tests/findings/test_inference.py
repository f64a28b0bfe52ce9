"""Findings about what inference adds, on small traces."""

from __future__ import annotations

from etmem.analysis.findings_inference import first_inference_grows, indirection_buffers
from etmem.program import read
from tests.analysis.worlds import XNN, World
from tests.models.registry import model_path

KIB = 1024
POSIX_MEMALIGN, REALLOC = 4, 2


def ran(*, later: bool = False) -> World:
    """Two inferences. The first allocates a workspace, two tables that stay, and scratch that does not."""
    world = World()
    with world.method_load():
        world.alloc(0x1000_0000, 512 * KIB)
        with world.init():
            pass
    with world.inference(0), world.execute():
        world.packed(0x2000_0000, 256 * KIB, "xnn_plan_memory", function=POSIX_MEMALIGN)
        for index in range(2):
            address = 0x3000_0000 + 0x100_0000 * index
            world.packed(address, 100 * KIB, "xnn_reshape_convolution2d_nhwc_f32", function=REALLOC)
        world.packed(0x5000_0000, 90 * KIB, "xnn_reshape_softmax_nc_f32", function=REALLOC)
        world.alloc(0x6000_0000, 800 * KIB)
        world.free(0x6000_0000)
    with world.inference(1), world.execute():
        if later:
            world.alloc(0x7000_0000, 512 * KIB)
    return world


def test_what_the_first_inference_adds_and_keeps(told):
    (found,) = first_inference_grows(told(ran()))
    assert found.bytes == (256 + 2 * 100 + 90) * KIB
    assert found.saving_bytes is None
    assert found.owner == XNN
    assert found.detail == {"blocks": 4, "after_load_bytes": 512 * KIB}
    assert "0.5 of 1.8 MiB" in found.advice


def test_what_a_later_inference_adds_is_not_the_firsts(told):
    (found,) = first_inference_grows(told(ran(later=True)))
    assert found.bytes == (256 + 2 * 100 + 90) * KIB


def test_nothing_is_said_without_an_inference(told):
    world = World()
    with world.method_load():
        world.alloc(0x1000_0000, 512 * KIB)
    context = told(world)
    assert first_inference_grows(context) == ()
    assert indirection_buffers(context) == ()


def test_the_applications_own_memory_is_not_a_finding(told):
    world = World()
    with world.method_load():
        world.alloc(0x1000_0000, 512 * KIB)
    with world.inference(0):
        world.alloc(0x2000_0000, 512 * KIB, scope=0)  # a thread that nothing is known of
    assert first_inference_grows(told(world)) == ()


def test_pointer_tables_of_convolutions(told):
    """GIVEN two tables of convolutions and one buffer of a softmax THEN the tables alone are counted."""
    (found,) = indirection_buffers(told(ran()))
    assert (found.owner, found.bytes) == (XNN, 200 * KIB)
    assert found.detail == {"blocks": 2, "sizes": [[100 * KIB, 2]]}
    assert found.advice.startswith("2 convolutions, 102,400 B each: ceil(H*W/tile)*tile")


def test_the_size_of_a_table_is_explained(told):
    """GIVEN the tables of convs on AVX-512 THEN the advice says of what shape they are, and how large elsewhere."""
    program = read(model_path("convs"))
    world = World()
    world.note("program.1.path", str(program.path))
    with world.program_load():
        pass
    with world.method_load(), world.init():
        pass
    with world.inference(0), world.execute():
        for index in range(6):
            world.packed(0x100_0000 * (index + 1), 4_718_952, "xnn_reshape_convolution2d_nhwc_f32", function=REALLOC)
    (found,) = indirection_buffers(told(world, program))
    assert found.bytes == 28_313_712
    assert found.advice == (
        "6 convolutions, 4,718,952 B each: 256x256 outputs, 9 taps, 8 B pointers, "
        "tile 7 (avx512; 4,718,880 on avx2; 4,718,736 on neon)."
    )
