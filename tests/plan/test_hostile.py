"""Input that lies: one clear line, no traceback, no allocation in proportion to the lie."""

from __future__ import annotations

import random
import struct
import tracemalloc

import pytest

from etmem.delegates.estimating import CannotEstimate, Machine
from etmem.delegates.xnnpack.estimate import estimate
from etmem.model.errors import EtmemError
from etmem.planning import PlanOptions, plan
from etmem.program.flatbuffer import Buffer
from etmem.program.reader import opened, read_bytes, read_data
from tests.plan.lies import LIES, patched, root, scalar

MACHINE = Machine("avx512", "", 8, 2, None)


@pytest.fixture
def blob(model):
    with opened(model("convs")) as (program, view):
        segment = program.segments[program.plans[0].delegates[0].index]
        return bytes(view[segment.file_offset : segment.file_offset + segment.bytes])


def test_the_blob_as_it_is(blob):
    assert estimate(memoryview(blob), MACHINE, {}).workspace.bytes == 16777248


@pytest.mark.parametrize("size", [0, 3, 8, 20, 33, 100, 1000])
def test_a_blob_that_is_cut_off(blob, size):
    with pytest.raises(CannotEstimate):
        estimate(memoryview(blob)[:size], MACHINE, {})


@pytest.mark.parametrize("field", range(4))
def test_a_header_that_points_beyond_the_end(blob, field):
    where, kind = ((10, "<I"), (14, "<I"), (18, "<I"), (22, "<Q"))[field]
    damaged = bytearray(blob)
    struct.pack_into(kind, damaged, where, 0xFFFFFFFF)
    with pytest.raises(CannotEstimate):
        estimate(memoryview(damaged), MACHINE, {})


def test_a_blob_of_another_version(blob):
    with pytest.raises(CannotEstimate, match="version"):
        estimate(memoryview(blob.replace(b"XN01", b"XN99")), MACHINE, {})


def test_flipped_bytes_of_a_blob_end_in_an_answer(blob):
    """An estimate of what is left, or CannotEstimate: nothing else, whichever byte it is."""
    chance = random.Random(7)
    for _ in range(600):
        damaged = bytearray(blob)
        for _ in range(chance.choice((1, 1, 4))):
            damaged[chance.randrange(len(damaged))] = chance.choice((0, 1, 0x7F, 0xFF, chance.randrange(256)))
        try:
            found = estimate(memoryview(damaged), MACHINE, {})
        except CannotEstimate:
            continue
        assert all(block.bytes >= 0 for block in found.blocks)


def test_flipped_bytes_of_a_program_end_in_an_answer(model, tmp_path):
    whole = model("convs").read_bytes()
    chance = random.Random(11)
    path = tmp_path / "damaged.pte"
    for _ in range(250):
        damaged = bytearray(whole)
        damaged[chance.randrange(8, 8192)] = chance.choice((0, 0x7F, 0xFF, chance.randrange(256)))
        path.write_bytes(damaged)
        assert "\n" not in said(path)


def said(path) -> str:
    """The error's message, or nothing."""
    try:
        plan(path).text(full=True)
    except EtmemError as error:
        return error.message
    return ""


def test_an_unreadable_blob_is_said_and_the_rest_is_planned(model, tmp_path):
    path = tmp_path / "blob.pte"
    path.write_bytes(model("convs").read_bytes().replace(b"XN01", b"XN99"))
    found = plan(path)
    assert any("unknown version" in note for note in found.notes)
    load = found.forecast("load")
    assert load is not None
    assert load.high_bytes is None
    assert load.private_bytes > 9_000_000


TOLD = {
    "endless_methods": "beyond the end",
    "endless_values": "beyond the end",
    "endless_instructions": "beyond the end",
    "endless_operators": "beyond the end",
    "no_such_input": "input 2147483647 of",
    "circle": "beyond the end",
    "segments_beyond_the_end": "segments end at byte",
    "flatbuffer_beyond_the_end": "flatbuffer ends at byte 9,223,372,036,854,775,808",
    "newer": "unknown version, ET13",
    "cut_off": "cut off",
}


@pytest.mark.parametrize("name", LIES)
def test_each_lie_is_told_in_one_line(model, tmp_path, name):
    """GIVEN a program that lies WHEN it is planned THEN one line says so, and next to nothing is allocated."""
    path = tmp_path / "lie.pte"
    path.write_bytes(LIES[name](model("structured").read_bytes()))
    tracemalloc.start()
    message = said(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "\n" not in message
    assert TOLD.get(name, "") in message
    assert bool(message) == (name in TOLD)
    assert peak < 8 << 20


def test_a_buffer_of_any_size_is_a_number(model, tmp_path):
    path = tmp_path / "huge.pte"
    path.write_bytes(LIES["huge_buffer"](model("structured").read_bytes()))
    found = plan(path)
    assert found.methods[0].arenas[0].bytes == 2**62


def test_segments_that_overlap(model, tmp_path):
    whole = model("convs").read_bytes()
    one, other = list(root(whole).tables("segments"))[1:3]
    path = tmp_path / "overlap.pte"
    path.write_bytes(patched(whole, scalar(other, "offset"), "<Q", one.integer("offset")))
    assert "overlap" in said(path)
    path.write_bytes(patched(whole, 24, "<Q", 64))
    assert "inside the flatbuffer" in said(path)


def test_a_tensor_beyond_its_buffer(model, tmp_path):
    whole = model("convs").read_bytes()
    plans = read_bytes(whole).plans[0]
    size = next(size for size in plans.buffer_sizes if size)
    path = tmp_path / "beyond.pte"
    path.write_bytes(whole.replace(struct.pack("<q", size), struct.pack("<q", 1000)))
    assert "of a planned buffer of 1,000" in said(path)


def test_data_of_another_program(model, tmp_path):
    """GIVEN a .ptd that is not the program's, lacks a tensor or has a short one THEN one line names it."""
    program = model("external_data")
    whole = next(program.parent.glob("*.ptd")).read_bytes()
    path = tmp_path / "other.ptd"

    def told(data: bytes, of=program) -> str:
        path.write_bytes(data)
        with pytest.raises(EtmemError) as caught:
            plan(of, PlanOptions(data=(path,)))
        return caught.value.message

    assert "lacks 1 of 4 tensors that the program names: 0.weight" in told(whole.replace(b"0.weight", b"9.weight"))
    segments = Buffer(memoryview(whole)[: read_data(path).header.program_bytes]).root("FlatTensor").tables("segments")
    large = next(segment for segment in segments if segment.integer("size") == 65536)
    short = patched(whole, scalar(large, "size"), "<Q", 65520)
    assert "0.weight takes 65,536 bytes in the program and has 65,520" in told(short)
    assert "names no external data" in told(whole, of=model("convs"))
    without = plan(program)
    assert any("4 tensors of external data" in note for note in without.notes)
    load = without.forecast("load")
    assert load is not None
    assert load.high_bytes is None
