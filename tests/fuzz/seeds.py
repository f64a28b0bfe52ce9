"""Writes the seeds of a run with phases, delegates, a balance and rows of every table: python -m tests.fuzz.seeds."""

from __future__ import annotations

from etmem.trace.pack import pack
from tests.analysis.worlds import World, rss_edges
from tests.fuzz.targets import CORPUS


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


def main() -> None:
    raw = CORPUS / "report/phases.trace"
    raw.write_bytes(run_with_phases().to_bytes())
    pack(raw, raw.with_suffix(".packed"))


if __name__ == "__main__":
    main()
