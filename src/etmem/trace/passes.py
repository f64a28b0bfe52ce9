"""The passes over all events of a trace, as an interface: native (``native.py``) or in Python (``model.py``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from etmem.trace.tables import I64, NOT_FOLDED, U8, U32, U64, Events, Folded

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
class Folding:
    """Which blocks need no row of their own: those that were live at no edge."""

    edges: U64
    """Sorted stamps."""
    since: int
    """What had ended by this stamp, which is an edge or after all of them, is left out."""


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
    freed_scope: U32
    freed_thread: U32
    folded: U32
    function: U8
    unmatched_frees: int
    replaced_allocations: int
    last_gone: int
    """The last stamp of a block that was folded or left out, 0 for none."""
    brief: Folded = NOT_FOLDED


@dataclass(frozen=True)
class LiveRows:
    """What is live from ``begin`` up to, not including, ``end``, with what weight; rows not ``wanted`` are left out."""

    begin: U64
    end: U64
    weights: I64
    wanted: npt.NDArray[np.bool_]
    folded: U32 | None = None
    """As in ``tables.Blocks``: rows that stand for blocks in ``brief`` are not counted themselves."""
    brief: Folded = NOT_FOLDED


class Matcher(Protocol):
    """Matches allocations with frees; fed with all events, in order, piece by piece."""

    def feed(self, events: Events) -> npt.NDArray[np.bool_]:
        """Which of these events are an UNDO of a FREE. Those of an UNMAP are left to ``mappings``."""

    def finish(self) -> HeapBlocks:
        """All rows. Nothing can be fed any more."""


class Passes(Protocol):
    def survey(self, records: Records, spans: Spans) -> Survey:
        """Counts and checks every event; a TraceError where one cannot be."""

    def order(self, records: Records, spans: Spans, survey: Survey) -> U32:
        """The slots of all events by stamp, for stamps that are nearly dense."""

    def column(self, name: str, records: Records, order: U32, spans: Spans) -> Column:
        """One column of the events at these slots."""

    def batch(self, records: Records, order: U32, spans: Spans) -> Events:
        """All columns of the events at these slots."""

    def matcher(self, capacity: int, folding: Folding | None = None) -> Matcher:
        """A matcher for at most ``capacity`` allocations. It may fold the blocks that ``folding`` allows to."""

    def timeline(self, rows: LiveRows, since: int, until: int, bins: U64 | None = None) -> tuple[U64, I64]:
        """Stamps, and the weight that is live from each of them on: right for stamps in [since, until].

        The first stamp is 0, and a value is another than the one before. With ``bins`` (sorted) only the first, lowest,
        highest and last of the values that begin from one bin up to the next.
        """

    def numbers(self, planes: npt.NDArray[np.uint8], dtype: np.dtype[Any], *, steps: bool) -> Column:
        """Numbers from their bytes in planes, shape (bytes of one, count); see ``columns``."""
