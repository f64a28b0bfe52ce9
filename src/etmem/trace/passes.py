"""The passes over all events of a trace, as an interface: native (``native.py``) or in Python (``model.py``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from etmem.trace.tables import I64, U8, U32, U64, Events

Records = npt.NDArray[np.void]
"""A file's 32-byte records, ``layout.EVENT_DTYPE``; the index of one is its slot."""

Column = npt.NDArray[Any]


@dataclass(frozen=True)
class Spans:
    """Where events are: chunk i has the slots first[i]...last[i]-1."""

    first: U64
    last: U64
    threads: U32
    """The thread of every chunk of the file, by position, events or not."""
    slots_per_chunk: int
    scopes: U8
    """1 for a known scope, by id."""


@dataclass(frozen=True)
class Survey:
    """What was counted before the events are put in order."""

    events: int
    first_stamp: int
    last_stamp: int
    unknown_scopes: int


@dataclass(frozen=True)
class HeapBlocks:
    """Allocations by begin, and what did not fit. Columns as in ``tables.Blocks``."""

    begin: U64
    end: U64
    address: U64
    bytes: U64
    scope: U32
    stack: U32
    thread: U32
    unmatched_frees: int
    replaced_allocations: int


@dataclass(frozen=True)
class LiveRows:
    """What is live from ``begin`` up to, not including, ``end``, with what weight; rows not ``wanted`` are left out."""

    begin: U64
    end: U64
    weights: I64
    wanted: npt.NDArray[np.bool_]


class Matcher(Protocol):
    """Matches allocations with frees; fed with all events, in order, piece by piece."""

    def feed(self, events: Events) -> npt.NDArray[np.bool_]:
        """Which of these events are an UNDO of a FREE. Those of an UNMAP are left to ``mappings``."""

    def finish(self) -> HeapBlocks: ...


class Passes(Protocol):
    def survey(self, records: Records, spans: Spans) -> Survey:
        """Counts and checks every event; a TraceError where one cannot be."""

    def order(self, records: Records, spans: Spans, survey: Survey) -> U32:
        """The slots of all events by stamp, for stamps that are nearly dense."""

    def column(self, name: str, records: Records, order: U32, spans: Spans) -> Column:
        """One column of the events at these slots."""

    def batch(self, records: Records, order: U32, spans: Spans) -> Events:
        """All columns of the events at these slots."""

    def matcher(self, capacity: int) -> Matcher:
        """A matcher for at most ``capacity`` allocations."""

    def timeline(self, rows: LiveRows, since: int, until: int) -> tuple[U64, I64]:
        """Stamps, and the weight that is live from each of them on: right for stamps in [since, until].

        The first stamp is 0, and a value is another than the one before.
        """
