"""Single events out of millions."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from etmem.trace.tables import U64, EventKind, Events


def pick(events: Events, stamps: U64) -> Events:
    """The events with these stamps and all events of heaps, in stamp order.

    One pass, batch by batch: the events of a packed trace are decoded as they go by.
    """
    wanted = np.sort(stamps)
    parts = [_pick(batch, wanted) for batch in events.batches() if len(batch)]
    names = [column.name for column in fields(Events)]
    if not parts:
        return events
    return Events(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})


def events_at(picked: Events, stamps: U64) -> Events:
    """The events with these stamps, one row per stamp in the order given; all must have been picked."""
    return _rows(picked, np.searchsorted(picked.stamp, stamps))


def _pick(batch: Events, wanted: U64) -> Events:
    here = wanted[np.searchsorted(wanted, batch.stamp[0]) : np.searchsorted(wanted, batch.stamp[-1], "right")]
    place = np.searchsorted(batch.stamp, here)
    keep = batch.kind >= EventKind.HEAP_ALLOC
    keep[place[batch.stamp[place] == here]] = True
    return _rows(batch, np.flatnonzero(keep))


def _rows(events: Events, rows: np.typing.NDArray[np.intp]) -> Events:
    return Events(**{column.name: getattr(events, column.name)[rows] for column in fields(Events)})
