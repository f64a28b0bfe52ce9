"""Single events out of many."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from etmem.trace.tables import U64, Events


def events_at(events: Events, stamps: U64) -> Events:
    """The events with these stamps, one row per stamp in the order given. Every stamp must be an event's.

    Takes the events batch by batch: a column of all of them may be larger than all the rest.
    """
    wanted = np.unique(stamps)
    names = [column.name for column in fields(Events)]
    parts: dict[str, list[npt.NDArray[Any]]] = {name: [] for name in names}
    if len(wanted):
        for batch in events.batches():
            here = wanted[np.searchsorted(wanted, batch.stamp[0]) : np.searchsorted(wanted, batch.stamp[-1], "right")]
            if len(here):
                rows = np.searchsorted(batch.stamp, here)
                for name in names:
                    parts[name].append(getattr(batch, name)[rows])
    place = np.searchsorted(wanted, stamps)
    empty = np.empty(0, np.uint64)
    return Events(**{name: np.concatenate(found or [empty])[place] for name, found in parts.items()})
