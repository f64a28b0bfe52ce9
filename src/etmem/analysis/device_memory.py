"""Memory of devices, as its heaps reported it: beside the process's own, never in its totals."""

from __future__ import annotations

import numpy as np

from etmem.analysis.arenas import heap_users
from etmem.analysis.context import Account
from etmem.analysis.keys import as_category
from etmem.analysis.lookup import I64
from etmem.analysis.timeline import Timeline, Window, timeline
from etmem.model.summary import DeviceMemory
from etmem.model.words import HOST, Category, PhaseKind
from etmem.model.words import MemoryKind as Word
from etmem.trace.tables import MemoryKind

_WORDS = {
    MemoryKind.GPU: Word.GPU,
    MemoryKind.NPU: Word.NPU,
    MemoryKind.DMA_BUF: Word.DMA_BUF,
    MemoryKind.OTHER_DEVICE: Word.OTHER_DEVICE,
}


def device_memory(account: Account) -> tuple[DeviceMemory, ...]:
    """One row per heap, in the order of their registration."""
    heaps = (heap for heap in account.trace.heaps.values() if heap.memory is not MemoryKind.HOST)
    return tuple(_row(account, heap.id) for heap in sorted(heaps, key=lambda heap: heap.stamp))


def heap_timeline(account: Account, heap: int) -> Timeline:
    """What one heap of a device has out, from the trace's begin on."""
    extents = account.device
    rows = np.flatnonzero(extents.heap == heap)
    sizes: I64 = extents.bytes[rows].astype(np.int64)
    return timeline(extents.begin[rows], extents.end[rows], sizes, Window(0, account.last_stamp))


def _row(account: Account, heap: int) -> DeviceMemory:
    registered, extents = account.trace.heaps[heap], account.device
    rows = np.flatnonzero(extents.heap == heap)
    line = heap_timeline(account, heap)
    inferences = account.spans_of(PhaseKind.INFERENCE)
    return DeviceMemory(
        memory=_WORDS[registered.memory],
        name=registered.name,
        owner=registered.owner or HOST,
        category=as_category(registered.category, Category.OTHER),
        load_peak_bytes=_most(account, line, PhaseKind.PROGRAM_LOAD, PhaseKind.METHOD_LOAD),
        inference_peak_bytes=_most(account, line, PhaseKind.INFERENCE),
        steady_bytes=line.at(max(span.end for span in inferences)) if inferences else None,
        peak_bytes=line.peak(0, account.last_stamp)[1],
        live_end_bytes=line.at(account.last_stamp),
        allocated_bytes=int(extents.bytes[rows].sum()),
        allocations=len(rows),
        users=heap_users(account, extents, heap, rows),
    )


def _most(account: Account, line: Timeline, *kinds: PhaseKind) -> int | None:
    return max((line.peak(span.begin, span.end)[1] for span in account.spans_of(*kinds)), default=None)
