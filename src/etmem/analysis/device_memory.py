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
from etmem.trace.tables import Heap, MemoryKind

_WORDS = {
    MemoryKind.GPU: Word.GPU,
    MemoryKind.NPU: Word.NPU,
    MemoryKind.DMA_BUF: Word.DMA_BUF,
    MemoryKind.OTHER_DEVICE: Word.OTHER_DEVICE,
}


def device_memory(account: Account) -> tuple[DeviceMemory, ...]:
    """One row per heap."""
    return tuple(_row(account, heap) for heap in device_heaps(account))


def device_heaps(account: Account) -> list[Heap]:
    """In the order of their registration."""
    heaps = (heap for heap in account.trace.heaps.values() if heap.memory is not MemoryKind.HOST)
    return sorted(heaps, key=lambda heap: heap.stamp)


def heap_timeline(account: Account, heap: int) -> Timeline:
    """What one heap of a device has out, from the trace's begin on."""
    return _timeline(account, _rows(account, heap))


def _rows(account: Account, heap: int) -> I64:
    return np.flatnonzero(account.device.heap == heap)


def _timeline(account: Account, rows: I64) -> Timeline:
    extents = account.device
    sizes: I64 = extents.bytes[rows].astype(np.int64)
    return timeline(extents.begin[rows], extents.end[rows], sizes, Window(0, account.last_stamp))


def _row(account: Account, registered: Heap) -> DeviceMemory:
    extents = account.device
    rows = _rows(account, registered.id)
    line = _timeline(account, rows)
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
        users=heap_users(account, extents, registered.id, rows),
    )


def _most(account: Account, line: Timeline, *kinds: PhaseKind) -> int | None:
    return max((line.peak(span.begin, span.end)[1] for span in account.spans_of(*kinds)), default=None)
