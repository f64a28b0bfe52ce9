"""Writes the seeds of the traces: python -m tests.fuzz.seeds.

A run with phases, delegates, a balance and rows of every table; and one file for each way in which a trace can lie.
"""

from __future__ import annotations

from collections.abc import Iterator

from etmem.trace import layout
from etmem.trace.layout import MetaType
from etmem.trace.pack import pack
from etmem.trace.tables import ScopeKind
from etmem.trace.writer import TraceBuilder
from tests.analysis.worlds import World, rss_edges
from tests.fuzz.targets import CORPUS
from tests.trace.test_moving import CHUNK, EVENTS, full_chunk, moved


def run_with_phases() -> World:
    world = World()
    world.note("program.1.bytes", "4096")
    with world.program_load() as load:
        world.alloc(0x10_0000, 0x400)
    rss_edges(world, load, 0x4000, 0x8000, 0x9000)
    with world.method_load() as method, world.init():
        world.packed(0x11_0000, 0x2000, "weights")
        world.alloc(0x12_0000, 0x300)
    rss_edges(world, method, 0x8000, 0xC000, 0xC000)
    text = "00100000-00140000 rw-p 00000000 00:00 0 [heap]\n"
    world.snapshot("method_load", rss_bytes=0x8000, maps=text, pages=[(0x10_0000, 0x10_4000, 8)])
    for iteration in range(2):
        with world.inference(iteration) as inference, world.execute():
            world.alloc(0x13_0000 + 0x2000 * iteration, 0x1000)
        rss_edges(world, inference, 0xC000, 0xE000, 0xF000)
        world.snapshot("inference", rss_bytes=0xE000, maps=text, pages=[(0x10_0000, 0x10_8000, 8)])
    with world.unload(), world.destroy():
        world.free(0x11_0000)
    return world


def hostile() -> Iterator[tuple[str, bytes]]:
    whole = full_chunk()
    yield "moving", moved(whole, 512, 0)
    yield "moved", moved(whole, CHUNK, 5)
    yield "moved_from_another", moved(whole[:1000] + bytes(32) + whole[1032:], CHUNK, 0, target=0)
    yield "cut", bytes(whole[:4700])
    yield (
        "big_endian",
        bytes(whole[:8])
        + bytes(byte for at in range(8, 40, 4) for byte in whole[at : at + 4][::-1])
        + bytes(whole[40:]),
    )
    yield "newer", bytes(whole[:8]) + b"\x09" + bytes(whole[9:])
    for name, stamp in (("twice", 1), ("far_apart", 2**60)):
        found = bytearray(whole)
        found[EVENTS + 64 : EVENTS + 72] = stamp.to_bytes(8, "little")
        yield name, bytes(found)
    circle = TraceBuilder(chunk_bytes=CHUNK)
    circle.scope_begin(ScopeKind.INFERENCE, parent=2)
    circle.scope_begin(ScopeKind.INFERENCE, parent=1)
    yield "circle", circle.to_bytes()
    counts = TraceBuilder(chunk_bytes=CHUNK)
    counts._meta(MetaType.STACK, layout.STACK.pack(1, 2**32 - 1))
    yield "huge_count", counts.to_bytes()


def main() -> None:
    for name, data in hostile():
        (CORPUS / f"report/{name}.trace").write_bytes(data)
    raw = CORPUS / "report/phases.trace"
    raw.write_bytes(run_with_phases().to_bytes())
    pack(raw, raw.with_suffix(".packed"))


if __name__ == "__main__":
    main()
