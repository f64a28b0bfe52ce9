"""What the registered heaps handed out: parts of blocks, which refine them and never add to a total."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from etmem.trace.events import COLUMNS
from etmem.trace.tables import U8, U32, U64, EventKind, Events, Trace


@dataclass(frozen=True)
class Arena:
    """Everything one heap did, in stamp order; equal-length columns."""

    heap: int
    stamp: U64
    kind: U8
    """HEAP_ALLOC, HEAP_FREE or HEAP_RESET."""
    address: U64
    size: U64
    scope: U32
    thread: U32

    def __len__(self) -> int:
        return len(self.stamp)


def arenas(trace: Trace) -> dict[int, Arena]:
    """By heap id; one that was registered and did nothing has empty columns. What a heap did that nothing
    registers (its entry was lost with the end of the file) is left out: nobody could say whose it is."""
    found = []
    for batch in trace.events.batches():
        here = np.flatnonzero(batch.kind >= EventKind.HEAP_ALLOC)
        if len(here):
            found.append([getattr(batch, name)[here] for name in COLUMNS])
    events = Events(*(np.concatenate(parts) for parts in zip(*found, strict=True))) if found else _none()
    return {heap: _arena(heap, events, np.flatnonzero(events.stack == heap)) for heap in trace.heaps}


def _none() -> Events:
    words, halves, bytes_ = np.empty(0, np.uint64), np.empty(0, np.uint32), np.empty(0, np.uint8)
    return Events(words, bytes_, bytes_, words, words, halves, halves, halves)


def _arena(heap: int, events: Events, here: np.typing.NDArray[np.intp]) -> Arena:
    return Arena(
        heap=heap,
        stamp=events.stamp[here],
        kind=events.kind[here],
        address=events.address[here],
        size=events.size[here],
        scope=events.scope[here],
        thread=events.thread[here],
    )
