"""A small trace with one of everything, and the comparison of two traces."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from etmem.trace.tables import (
    CounterUnit,
    Events,
    MapFlag,
    MemoryKind,
    MisuseKind,
    RssLabel,
    ScopeKind,
    SegmentType,
    Trace,
)
from etmem.trace.writer import TraceBuilder

MIB = 1 << 20


def everything(chunk_bytes: int = 1024) -> TraceBuilder:
    b = TraceBuilder(chunk_bytes=chunk_bytes)
    b.note("executorch.version", "1.5.1")
    b.rss(RssLabel.START, 4 * MIB)
    b.thread(1000, existed_before=True)
    b.alloc(0x5000, 256)
    with b.scope(ScopeKind.PROGRAM_LOAD, "mlp.pte", 1) as load:
        b.map(0x7F0000000000, 3 * 4096, path="/models/mlp.pte", offset=4096)
        segment = b.segment(0x7F0000000000, 9000, offset=4096, type=SegmentType.BACKEND, name="XnnpackBackend")
        b.module(0x7E0000000000, 8192, "/lib/libxnnpack.so", build_id="c0ffee")
    with b.scope(ScopeKind.METHOD_LOAD, "forward", 1):
        heap = b.heap("method_allocator", "executorch", "method_allocator")
        b.heap_alloc(heap, 0x5010, 64)
        b.claim(0x5000, 256, "executorch", "planned_memory", "planned[1]")
        with b.scope(ScopeKind.DELEGATE, "XnnpackBackend", 0, 0):
            b.alloc(0x6000, 16, stack=(0x7E0000000010, 0x7E0000000200))
            b.free(0x6000)
            b.undo(0x6000)
            b.thread(1001, start_routine=0x7E0000000400, stack_pointer=0x7D0000000000)
            with b.on(1001):
                b.alloc(0x7D1000, 48)
                b.map(0x7C0000000000, MIB, flags=MapFlag.RESERVED)
                b.protect(0x7C0000000000, 8192)
            b.segment_free(segment, scope=load)
        b.heap_free(heap, 0x5010)
        b.heap_reset(heap)
    with b.scope(ScopeKind.TAG, "tokenizer"):
        b.scope_end(b.scope_begin(ScopeKind.TAG, "cache", category="workspace"), failed=True)
    b.advise(0x7C0000000000, 4096, free=True)
    b.unmap(0x7F0000001000, 4096)
    b.brk(0x9000, 0x2000)
    b.own(0x7B0000000000, 65536, "arena")
    b.snapshot("inference", rss_bytes=9 * MIB, maps="00400000-00401000 r--p\n" * 60, pages=[(4096, 12288, 8)] * 40)
    b.thread_end(1001)
    b.scope_begin(ScopeKind.INFERENCE, "forward", 1)
    b.free(0x5000)
    return b


def everything_of_version_2(chunk_bytes: int = 1024) -> TraceBuilder:
    b = everything(chunk_bytes)
    frames = b.heap("frames", "delegate:Gpu", "workspace", memory=MemoryKind.GPU)
    b.heap_alloc(frames, 0x10, 4096)
    b.heap_free(frames, 0x10)
    b.label(0x6000, 16, "table")
    b.counter("fps", 30)
    b.counter("driver", 1 << 40, CounterUnit.BYTES)
    b.misuse(MisuseKind.SCOPE_END, scope=1)
    return b


def columns(events: Events) -> dict[str, list[int]]:
    return {field.name: getattr(events, field.name).tolist() for field in fields(Events)}


def assert_same(one: Trace, other: Trace) -> None:
    for field in fields(Trace):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if field.name == "events":
            assert columns(a) == columns(b)
        elif field.name == "clock":
            np.testing.assert_array_equal(a, b)
        elif field.name == "snapshots":
            assert repr(a) == repr(b)
            assert [x.pages.tolist() for x in a] == [x.pages.tolist() for x in b]
        else:
            assert a == b
