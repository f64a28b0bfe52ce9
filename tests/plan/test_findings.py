"""Findings that no test model has by nature, on programs that are made to have them."""

from __future__ import annotations

from dataclasses import replace

from etmem.model.words import FindingCode
from etmem.planning import plan
from etmem.planning.duplicates import duplicates
from etmem.planning.findings import findings
from etmem.program import read
from etmem.program.model import DataSegment, NamedData

PIECE = 100_000


def stored(*pieces: bytes):
    """A program whose named data are these pieces, and its bytes."""
    offsets = [sum(map(len, pieces[:index])) for index in range(len(pieces))]
    segments = tuple(DataSegment(offset, len(piece), offset) for offset, piece in zip(offsets, pieces, strict=True))
    named = tuple(NamedData(f"piece{index}", index) for index in range(len(pieces)))
    whole = b"".join(pieces)
    return segments, named, lambda place, count: whole[place : place + count], len(whole)


def with_pieces(program, *pieces: bytes):
    segments, named, read, size = stored(*pieces)
    return replace(
        program, plans=(), segments=segments, named_data=named, constant_segment=None, mutable_segments=(),
        file_bytes=size,
    ), read  # fmt: skip


def test_equal_pieces_are_found_and_only_those(model):
    one, other = bytes(range(250)) * 400, bytes(range(249, -1, -1)) * 400
    nearly = one[:-1] + b"!"
    program, read_at = with_pieces(read(model("convs")), one, other, one, nearly, bytes(PIECE), bytes(PIECE))
    (group,) = duplicates(program, read_at)
    assert (group.bytes, group.names) == (PIECE, ("piece0", "piece2"))


def test_stored_twice_has_the_bytes_that_are_again(model):
    one = bytes(range(250)) * 400
    program, read_at = with_pieces(read(model("convs")), one, one, one)
    (found,) = findings(program, read_at, (), (), {}, {})
    assert (found.code, found.bytes, found.saving_bytes) == (FindingCode.STORED_TWICE, 2 * PIECE, 2 * PIECE)


def test_an_arena_with_gaps_is_waste(model):
    program = read(model("kv_cache"))
    method = plan(model("kv_cache")).methods[0]
    (arena,) = method.arenas
    wide = replace(method, arenas=(replace(arena, bytes=arena.live_peak_bytes + (1 << 20)),))
    found = findings(replace(program, named_data=()), lambda *_: b"", program.plans, (wide,), {}, {})
    waste = next(finding for finding in found if finding.code is FindingCode.ARENA_WASTE)
    assert (waste.bytes, waste.saving_bytes) == (1 << 20, 1 << 20)
