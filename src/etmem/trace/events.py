"""Events that stay in the file: a column is made when it is first asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

import numpy as np

from etmem.trace.meta import damaged
from etmem.trace.passes import Column, Passes, Records, Spans, Survey
from etmem.trace.tables import U32, Events

COLUMNS = tuple(field.name for field in fields(Events))


class LazyEvents(Events):
    """Events whose columns are not there yet. Subclasses say how to make one."""

    def __init__(self, count: int) -> None:
        object.__setattr__(self, "_count", count)

    def __len__(self) -> int:
        count: int = self.__dict__["_count"]
        return count

    def __getattr__(self, name: str) -> Column:
        if name not in COLUMNS:
            raise AttributeError(name)
        column = self.make(name)
        object.__setattr__(self, name, column)
        return column

    def make(self, name: str) -> Column:
        raise NotImplementedError


class StoredEvents(LazyEvents):
    """Events of a raw trace: the mapped records and their order, four bytes per event."""

    def __init__(self, records: Records, order: U32, spans: Spans, passes: Passes) -> None:
        super().__init__(len(order))
        for name, value in (("records", records), ("order", order), ("spans", spans), ("passes", passes)):
            object.__setattr__(self, "_" + name, value)

    def make(self, name: str) -> Column:
        held = self.__dict__
        passes: Passes = held["_passes"]
        return passes.column(name, held["_records"], held["_order"], held["_spans"])

    def batches(self, rows: int = 1 << 20) -> Iterator[Events]:
        held = self.__dict__
        passes: Passes = held["_passes"]
        for at in range(0, len(self), rows):
            yield passes.batch(held["_records"], held["_order"][at : at + rows], held["_spans"])


def sort(records: Records, spans: Spans, survey: Survey, passes: Passes) -> U32:
    """The slots of all events by stamp. Stamps are nearly dense in what the agent writes; a file where they
    are not is sorted, since a table of all stamps could be larger than any memory."""
    if survey.last_stamp - survey.first_stamp <= 4 * survey.events + (1 << 20):
        return passes.order(records, spans, survey)
    pairs = zip(spans.first.tolist(), spans.last.tolist(), strict=True)
    slots = np.concatenate([first + np.flatnonzero(records["stamp"][first:last]) for first, last in pairs])
    stamps = records["stamp"][slots]
    by_stamp = np.argsort(stamps, kind="stable")
    stamps = stamps[by_stamp]
    if (stamps[1:] == stamps[:-1]).any():
        raise damaged("two events have one stamp")
    order: U32 = slots[by_stamp].astype(np.uint32)
    return order
