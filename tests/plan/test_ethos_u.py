"""Ethos-U: the scratch that Vela planned, on a program that Vela compiled and on streams made by hand."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from etmem.delegates.estimating import CannotEstimate, Machine
from etmem.delegates.ethos_u import estimate
from etmem.planning import PlanOptions, plan
from etmem.planning.emit import TEMP_POOL, header
from etmem.planning.options import parse_region
from etmem.program.reader import opened

PROGRAM = Path(__file__).parent / "files" / "ethos_u55.pte"
"""Written by ``tests.models.ethos_u`` with executorch 1.5.1 and ethos-u-vela 5.1.0."""
VELA_SRAM_BYTES = 4720
"""Vela's own report: "Total SRAM used 4.61 KiB"."""
MACHINE = Machine("", "", 4, 1, None)


def block(name: str, data: bytes, *, external: bool = False, size: int | None = None) -> bytes:
    head = struct.pack("<16sIB11x", name.encode(), len(data) if size is None else size, external)
    return head + data + bytes(-len(data) % 16)


def stream(*blocks: bytes) -> memoryview:
    return memoryview(b"".join((block("vela_bin_stream", b""), *blocks, block("vela_end_stream", b""))))


def scratch(size: int) -> bytes:
    return block("scratch_size", struct.pack("<I", size))


def test_the_scratch_is_what_vela_reports():
    assert f"{VELA_SRAM_BYTES / 1024:.2f}" == "4.61"
    with opened(PROGRAM) as (program, view):
        data = program.inline_delegates[program.plans[0].delegates[0].index]
        found = estimate(view[data.file_offset : data.file_offset + data.bytes], MACHINE, {})
    assert found.temp == (VELA_SRAM_BYTES, 16)
    assert found.blob_kept


def test_it_is_in_the_temp_pool_and_in_its_region():
    region = parse_region("sram=16KiB:planned,method,temp")
    found = plan(PROGRAM, PlanOptions(target="armv8m", regions=(region,)))
    pools = next(pools for pools in found.methods[0].pools if (pools.pointer_bytes, pools.temp_pool) == (4, True))
    assert pools.temp_bytes == VELA_SRAM_BYTES
    assert 0 < pools.temp_load_bytes < 1024
    assert pools.delegates_bytes == 0
    assert f"{TEMP_POOL} {VELA_SRAM_BYTES}" in header(found)
    verdict = found.verdicts[0]
    assert {part.name: part.bytes for part in verdict.parts}["temp"] == VELA_SRAM_BYTES
    assert verdict.fits
    tight = parse_region("sram=4KiB:temp")
    assert plan(PROGRAM, PlanOptions(target="armv8m", regions=(tight,))).verdicts[0].fits is False
    assert "delegates' scratch" in found.text()


def test_an_inline_blob_is_read_with_the_program_and_not_again():
    found = plan(PROGRAM)
    for at, temp in (("load", 0), ("inference", VELA_SRAM_BYTES)):
        moment = found.forecast(at)
        assert moment is not None
        assert moment.file_bytes == 9 * 4096
        assert sum(line.private_bytes for line in moment.lines if line.category == "temp_allocator") == temp


def test_data_outside_of_the_stream_is_named():
    key = "a" * 64
    blocks = (block("cmd_data", key.encode(), external=True), block("inputs", bytes(40)), scratch(100))
    found = estimate(stream(*blocks), MACHINE, {})
    assert [use.key for use in found.named_data] == [key]
    assert found.temp == (100, 16)


def test_streams_of_older_releases_hold_the_scratch_itself():
    assert estimate(stream(block("scratch_data", bytes(48))), MACHINE, {}).temp == (48, 16)


@pytest.mark.parametrize(
    ("blob", "words"),
    [
        (b"", "ends before"),
        (bytes(31), "ends before"),
        (b"XH00" * 40, "block"),
        (block("vela_bin_stream", b"") + scratch(1), "ends before"),
        (bytes(stream(scratch(1))) + bytes(16), "behind the end"),
        (bytes(stream()), "without a scratch size"),
        (bytes(stream(block("scratch_size", b"12"))), "2 bytes"),
        (bytes(stream(block("cmd_data", b"", size=0xFFFFFFFF))), "4,294,967"),
        (bytes(stream(block("unheard_of", b""), scratch(1))), "unheard_of"),
        (bytes(stream(block("vela_bin_stream", b""))), "vela_bin_stream"),
    ],
)
def test_streams_that_lie(blob, words):
    with pytest.raises(CannotEstimate, match=words):
        estimate(memoryview(blob), MACHINE, {})
