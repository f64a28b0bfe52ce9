from __future__ import annotations

from etmem.trace.arenas import arenas
from etmem.trace.tables import EventKind
from etmem.trace.writer import TraceBuilder


def test_each_heap_has_what_it_did_in_order() -> None:
    b = TraceBuilder()
    method = b.heap("method_allocator", "executorch", "method_allocator")
    temp = b.heap("temp_allocator", "executorch", "temp_allocator")
    idle = b.heap("pool")
    b.alloc(0x1000, 4096)
    stamps = [b.heap_alloc(method, 0x1000, 64), b.heap_alloc(temp, 0x1100, 32)]
    stamps += [b.heap_free(method, 0x1000), b.heap_reset(temp)]
    found = arenas(b.trace())
    assert list(found) == [method, temp, idle]
    assert found[method].stamp.tolist() == [stamps[0], stamps[2]]
    assert found[method].kind.tolist() == [EventKind.HEAP_ALLOC, EventKind.HEAP_FREE]
    assert found[temp].address.tolist() == [0x1100, 0]
    assert found[temp].size.tolist() == [32, 0]
    assert len(found[idle]) == 0


def test_a_trace_without_heaps_has_no_arenas() -> None:
    b = TraceBuilder()
    b.alloc(0x1000, 1)
    assert arenas(b.trace()) == {}
