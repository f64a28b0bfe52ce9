"""Views of made-up runs: a small one with all that a report shows, and the odd ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from etmem.analysis.accounting import account
from etmem.analysis.findings import findings
from etmem.analysis.options import SummaryOptions
from etmem.analysis.summarize import context, summary
from etmem.delegates import descriptions
from etmem.report.view import View
from etmem.trace.tables import CounterUnit, MapFlag, MemoryKind, RssLabel, ScopeKind
from etmem.trace.writer import TraceBuilder
from tests.analysis.worlds import OPTIONS, World

KIB = 1024
MIB = 1024 * 1024
ALIGNED = 4
"""posix_memalign, by its place in ``ALLOCATION_FUNCTIONS``."""
HOSTILE = "<img src=x onerror=\"document.title='taken'\"></script><script>document.title='taken'</script>\u202e&amp;"
"""Markup, the end of a script, and a character that turns the reading direction around."""


def view_of(
    world: TraceBuilder, options: SummaryOptions = OPTIONS, programs: Mapping[str, object] | None = None
) -> View:
    """What is shown is the same whether short-lived blocks are folded or not."""
    whole, folded = (_view(world, replace(options, fold_from=least), programs or {}) for least in (None, 0))
    assert folded.summary == whole.summary
    return whole if options.fold_from else folded


def _view(world: TraceBuilder, options: SummaryOptions, programs: Mapping[str, object]) -> View:
    found = context(account(world.trace(), options, descriptions(), programs))  # type: ignore[arg-type]
    return View(summary(found, findings), found, Path("small.etmem"))


def small(name: str = "small.pte", method: str = "forward", operator: str = "aten::add.out") -> World:
    """One delegate, one kernel, two inferences: 3 MiB of packed weights, 2 of planned memory, a workspace of 1."""
    world = World()
    world.note("program.1.path", f"/models/{name}")
    world.rss(RssLabel.START, 4 * MIB)
    with world.program_load() as load:
        world.map(0x7F0000000000, 8 * KIB, flags=MapFlag.FILE, path=f"/models/{name}")
    _edges(world, load, 4, 5)
    world.alloc(0x10000000, 2 * MIB)
    with world.method_load(method) as load:
        world.claim(0x10000000, 2 * MIB, "executorch", "planned_memory", "planned[1]")
        heap = world.heap("method_allocator", "executorch", "method_allocator")
        world.alloc(0x20000000, 64 * KIB)
        world.heap_alloc(heap, 0x20000000, 48 * KIB)
        with world.init():
            world.map(0x7F1000000000, 3 * MIB, flags=MapFlag.FILE, path=f"/models/{name}", offset=4096)
            for part in range(3):
                world.packed(0x30000000 + part * MIB, MIB, "xnn_create_convolution2d_nhwc_f32", function=ALIGNED)
            world.unmap(0x7F1000000000, 3 * MIB)
    _edges(world, load, 5, 9)
    for iteration in range(2):
        with world.inference(iteration, method) as inference:
            with world.execute():
                if iteration == 0:
                    world.packed(0x40000000, MIB, "xnn_plan_memory", function=ALIGNED)
            with world.scope(ScopeKind.INSTRUCTION, f"native_call_{operator}", 0, 1):
                world.alloc(0x50000000, 512 * KIB)
                world.free(0x50000000)
        _edges(world, inference, 9 + iteration, 10)
    with world.unload(method):
        world.free(0x40000000)
    return world


def hostile() -> World:
    return small(f"{HOSTILE}.pte", HOSTILE, HOSTILE * 100)


def many_operators(count: int = 2000) -> World:
    world = World()
    with world.program_load(), world.method_load():
        pass
    with world.inference():
        for index in range(count):
            with world.scope(ScopeKind.INSTRUCTION, f"native_call_aten::op_{index}.out", 0, index):
                world.alloc(0x10000000 + index * 4096, 100 + index)
    return world


def killed_in_load() -> World:
    """Neither the method's load nor the delegate's init ever ended."""
    world = World()
    with world.program_load():
        pass
    world.scope_begin(ScopeKind.METHOD_LOAD, "forward", 1)
    world.scope_begin(ScopeKind.DELEGATE, "XnnpackBackend", 0, 0)
    world.alloc(0x10000000, MIB)
    return world


def no_delegate() -> World:
    world = World()
    with world.program_load(), world.method_load():
        world.alloc(0x10000000, 4096)
    with world.inference():
        pass
    return world


def told() -> World:
    """A program that tells of a GPU's heap, a label, a scope of its own, and two counters: bytes, and a number."""
    world = World()
    with world.program_load(), world.method_load(), world.init():
        heap = world.heap(f"frames {HOSTILE}", "delegate:Gpu", "workspace", memory=MemoryKind.GPU)
        world.heap_alloc(heap, 0x2000, 8 * MIB)
        world.alloc(0x10000000, MIB)
        world.label(0x10000000, 4 * KIB, "tokens")
    for iteration in range(2):
        with world.inference(iteration):
            with world.scope(ScopeKind.TAG, "decode"):
                world.alloc(0x20000000, 64 * KIB)
                world.free(0x20000000)
            world.heap_alloc(heap, 0x3000000, 32 * MIB)
            world.counter("gpu.allocated", (40 - iteration) * MIB, CounterUnit.BYTES)
            world.heap_free(heap, 0x3000000)
            world.counter("queue", 3 - 5 * iteration)
    return world


def many_counter_values(count: int = 20_000, spike: int = 12_345) -> World:
    world = World()
    with world.program_load(), world.method_load():
        pass
    with world.inference():
        for index in range(count):
            world.counter("load", 1000 if index == spike else index % 7)
    return world


def one_event() -> World:
    world = World()
    world.alloc(0x1000, 16)
    return world


ODD = {
    "empty": World,
    "one_event": one_event,
    "no_delegate": no_delegate,
    "killed_in_load": killed_in_load,
    "many_operators": many_operators,
    "told": told,
    "hostile": hostile,
}


def dry(world: TraceBuilder) -> View:
    options = replace(OPTIONS, dry=True, target=replace(OPTIONS.target, dry=True))
    return view_of(world, options)


def _edges(world: World, scope: int, start: int, end: int) -> None:
    world.rss(RssLabel.PHASE_BEGIN, start * MIB, scope=scope, high_water_bytes=start * MIB)
    world.rss(RssLabel.PHASE_END, end * MIB, scope=scope, high_water_bytes=(end + 1) * MIB)
