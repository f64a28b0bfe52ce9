"""Input that lies: one clear line, no traceback, no allocation in proportion to the lie."""

from __future__ import annotations

import random
import struct

import pytest

from etmem.delegates.estimating import CannotEstimate, Machine
from etmem.delegates.xnnpack.estimate import estimate
from etmem.model.errors import EtmemError
from etmem.planning import plan
from etmem.program.reader import opened

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
