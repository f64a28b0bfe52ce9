"""The passes of ``native/agent/match.h``, by ctypes, and the choice between them and the model."""

from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, Structure, byref, c_uint64, c_void_p
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from etmem.model.errors import EtmemError
from etmem.trace.meta import damaged
from etmem.trace.model import ModelPasses
from etmem.trace.passes import Column, Folding, HeapBlocks, LiveRows, Matcher, Passes, Records, Spans, Survey
from etmem.trace.tables import I64, NOT_FOLDED, U32, U64, Events, Folded

LIBRARY = "libetmem.so"

_DTYPES: dict[str, Any] = {
    "stamp": np.uint64,
    "kind": np.uint8,
    "flags": np.uint8,
    "address": np.uint64,
    "size": np.uint64,
    "scope": np.uint32,
    "stack": np.uint32,
    "thread": np.uint32,
}
_BLOCKS: dict[str, Any] = {
    "begin": np.uint64,
    "end": np.uint64,
    "address": np.uint64,
    "bytes": np.uint64,
    "scope": np.uint32,
    "stack": np.uint32,
    "thread": np.uint32,
    "freed_scope": np.uint32,
    "freed_thread": np.uint32,
    "folded": np.uint32,
    "function": np.uint8,
}
_COUNTS = ("unmatched_frees", "replaced_allocations", "last_gone")
_FOLDED: dict[str, Any] = {"begin": np.uint64, "life": np.uint32, "row": np.uint32}

_DENSE = 16
"""Stamps for each row, above which they are sorted."""

_OK, _NO_MEMORY, _KIND, _RANGE, _DUPLICATE, _CAPACITY = range(6)


class _Survey(Structure):
    _fields_ = [(name, c_uint64) for name in ("events", "first_stamp", "last_stamp", "unknown_scopes", "bad_slot")]


class _Columns(Structure):
    _fields_ = [(name, c_void_p) for name in _DTYPES]


class _Blocks(Structure):
    _fields_ = [
        *((name, c_void_p) for name in _BLOCKS),
        *((name, c_uint64) for name in ("capacity", "count", *_COUNTS)),
    ]


class _Folded(Structure):
    _fields_ = [*((name, c_void_p) for name in _FOLDED), *((name, c_uint64) for name in ("capacity", "count"))]


class _Live(Structure):
    _fields_ = [
        *((name, c_void_p) for name in ("begin", "end", "weights", "wanted", "folded_count")),
        ("count", c_uint64),
        ("folded", POINTER(_Folded)),
    ]


def folder() -> Path:
    """Where the native parts are: $ETMEM_NATIVE_DIR, or inside the package."""
    chosen = os.environ.get("ETMEM_NATIVE_DIR")
    return Path(chosen) if chosen else Path(__file__).parent.parent / "_native"


def passes() -> Passes:
    """The native passes where their library is, the model elsewhere."""
    return _passes(folder() / LIBRARY)


@cache
def _passes(library: Path) -> Passes:
    try:
        return NativePasses(library)
    except (OSError, AttributeError):  # none, one of another machine, or one of before these functions
        return ModelPasses()


class NativePasses:
    """See ``Passes``. OSError or AttributeError where the library is not one of these."""

    def __init__(self, library: Path) -> None:
        if not library.is_file():  # a bare name would be searched for in the system
            raise FileNotFoundError(library)
        native = ctypes.CDLL(str(library))
        self._model = ModelPasses()
        spans = (c_void_p, c_void_p, c_void_p, c_uint64)
        scopes = (c_void_p, c_uint64)
        self._survey = native.etmem_read_survey
        self._survey.argtypes = (*spans, *scopes, POINTER(_Survey))
        self._order = native.etmem_read_order
        self._order.argtypes = (*spans, POINTER(_Survey), c_void_p)
        self._columns = native.etmem_read_columns
        self._columns.argtypes = (c_void_p, c_void_p, c_uint64, c_void_p, c_uint64, *scopes, POINTER(_Columns))
        self._columns.restype = None
        self.match_new = native.etmem_match_new
        self.match_new.restype = c_void_p
        self.match_delete = native.etmem_match_delete
        self.match_delete.argtypes = (c_void_p,)
        self.match_delete.restype = None
        self.match_fold = native.etmem_match_fold
        self.match_fold.argtypes = (c_void_p, c_void_p, c_uint64, c_uint64, POINTER(_Folded))
        self.match_fold.restype = None
        self.match_feed = native.etmem_match_feed
        self.match_feed.argtypes = (c_void_p, POINTER(_Columns), c_uint64, POINTER(_Blocks), c_void_p)
        self.match_finish = native.etmem_match_finish
        self.match_finish.argtypes = (c_void_p, POINTER(_Blocks))
        self._timeline = native.etmem_read_timeline
        self._timeline.argtypes = (POINTER(_Live), c_void_p, c_uint64, c_uint64, c_uint64, c_void_p, c_void_p)
        self._timeline.restype = c_uint64
        self._planes = native.etmem_read_planes
        self._planes.argtypes = (c_void_p, c_uint64, ctypes.c_uint32, ctypes.c_int, c_void_p)
        self._planes.restype = None

    def survey(self, records: Records, spans: Spans) -> Survey:
        found = _Survey()
        status = self._survey(*_place(records, spans), *_scopes(spans), byref(found))
        _check(status, records, found)
        return Survey(found.events, found.first_stamp, found.last_stamp, found.unknown_scopes)

    def order(self, records: Records, spans: Spans, survey: Survey) -> U32:
        order = np.zeros(survey.last_stamp - survey.first_stamp + 1 if survey.events else 0, np.uint32)
        found = _Survey(survey.events, survey.first_stamp, survey.last_stamp, survey.unknown_scopes, 0)
        status = self._order(*_place(records, spans), byref(found), order.ctypes.data)
        _check(status, records, found)
        return order[: found.events]

    def column(self, name: str, records: Records, order: U32, spans: Spans) -> Column:
        return self._fill((name,), records, order, spans)[name]

    def batch(self, records: Records, order: U32, spans: Spans) -> Events:
        return Events(**self._fill(tuple(_DTYPES), records, order, spans))

    def _fill(self, names: tuple[str, ...], records: Records, order: U32, spans: Spans) -> dict[str, Column]:
        arrays: dict[str, Column] = {name: np.empty(len(order), _DTYPES[name]) for name in names}
        columns = _Columns(**{name: array.ctypes.data for name, array in arrays.items()})
        order = np.ascontiguousarray(order)
        place = (order.ctypes.data, len(order), spans.threads.ctypes.data, spans.slots_per_chunk)
        self._columns(records.ctypes.data, *place, *_scopes(spans), byref(columns))
        return arrays

    def matcher(self, capacity: int, folding: Folding | None = None) -> Matcher:
        return NativeMatcher(self, capacity, folding)

    def timeline(self, rows: LiveRows, since: int, until: int, bins: U64 | None = None) -> tuple[U64, I64]:
        blocks = len(rows.begin) + len(rows.brief)
        if until - since > _DENSE * (blocks + 1):  # a table of all stamps could be larger than any memory
            return self._model.timeline(rows, since, until, bins)
        size = 2 * blocks + 1 if bins is None else min(2 * blocks, 4 * (len(bins) + 1)) + 1
        stamps, values = np.empty(size, np.uint64), np.empty(size, np.int64)
        columns = [np.ascontiguousarray(column) for column in (rows.begin, rows.end, rows.weights, rows.wanted)]
        counts = None if rows.folded is None else np.ascontiguousarray(rows.folded)
        brief = None if counts is None or not len(rows.brief) else _folded(rows.brief)
        live = _Live(
            *(column.ctypes.data for column in columns),
            None if counts is None else counts.ctypes.data,
            len(rows.begin),
            None if brief is None else ctypes.pointer(brief),
        )
        place = (None, 0) if bins is None else (bins.ctypes.data, len(bins))
        kept = self._timeline(byref(live), *place, since, until, stamps.ctypes.data, values.ctypes.data)
        if not kept:
            raise _no_memory()
        return stamps[:kept], values[:kept]

    def numbers(self, planes: npt.NDArray[np.uint8], dtype: np.dtype[Any], *, steps: bool) -> Column:
        planes = np.ascontiguousarray(planes)
        out: Column = np.empty(planes.shape[1], dtype)
        self._planes(planes.ctypes.data, len(out), dtype.itemsize, int(steps), out.ctypes.data)
        return out


def _folded(brief: Folded) -> _Folded:
    """As long as ``brief`` lives."""
    return _Folded(*(getattr(brief, name).ctypes.data for name in _FOLDED), capacity=len(brief), count=len(brief))


class NativeMatcher:
    """See ``Matcher``. The rows that stay unused cost address space only."""

    def __init__(self, native: NativePasses, capacity: int, folding: Folding | None) -> None:
        self._native = native
        self._state = native.match_new()
        if not self._state:
            raise _no_memory()
        self._arrays: dict[str, Column] = {name: np.empty(capacity, kind) for name, kind in _BLOCKS.items()}
        self._blocks = _Blocks(**{name: array.ctypes.data for name, array in self._arrays.items()}, capacity=capacity)
        self._brief: dict[str, Column] = {}
        if folding is not None:
            self._edges = np.ascontiguousarray(folding.edges, np.uint64)
            # An allocation may end another: there may be as many as events.
            self._brief = {name: np.empty(capacity, kind) for name, kind in _FOLDED.items()}
            self._folded = _Folded(
                **{name: array.ctypes.data for name, array in self._brief.items()}, capacity=capacity
            )
            place = (self._edges.ctypes.data, len(self._edges), folding.since)
            native.match_fold(self._state, *place, byref(self._folded))

    def __del__(self) -> None:
        if getattr(self, "_state", None):
            self._native.match_delete(self._state)
            self._state = None

    def feed(self, events: Events) -> npt.NDArray[np.bool_]:
        held = {field.name: np.ascontiguousarray(getattr(events, field.name)) for field in fields(Events)}
        columns = _Columns(**{name: array.ctypes.data for name, array in held.items()})
        undone = np.zeros(len(events), bool)
        place = (byref(columns), len(events), byref(self._blocks), undone.ctypes.data)
        _check_match(self._native.match_feed(self._state, *place))
        return undone

    def finish(self) -> HeapBlocks:
        _check_match(self._native.match_finish(self._state, byref(self._blocks)))
        brief = NOT_FOLDED
        if self._brief:
            brief = Folded(**{name: array[: self._folded.count] for name, array in self._brief.items()})
        columns: dict[str, Any] = {name: self._arrays[name][: self._blocks.count] for name in _BLOCKS}
        counts = {name: getattr(self._blocks, name) for name in _COUNTS}
        return HeapBlocks(**columns, **counts, brief=brief)


def _check_match(status: int) -> None:
    if status == _NO_MEMORY:
        raise _no_memory()
    if status != _OK:
        raise ValueError("more allocations than the matcher was made for")


def _place(records: Records, spans: Spans) -> tuple[int, int, int, int]:
    return records.ctypes.data, spans.first.ctypes.data, spans.last.ctypes.data, len(spans.first)


def _scopes(spans: Spans) -> tuple[int, int]:
    return spans.scopes.ctypes.data, len(spans.scopes)


def _check(status: int, records: Records, survey: _Survey) -> None:
    if status == _OK:
        return
    if status == _KIND:
        kind = int(records["word"][survey.bad_slot]) >> 48 & 0xFF
        raise damaged(f"an event of unknown kind {kind}")
    if status == _RANGE:
        raise damaged("an event with an impossible address, size or stamp")
    if status == _DUPLICATE:
        raise damaged("two events have one stamp")
    raise _no_memory()


def _no_memory() -> EtmemError:
    return EtmemError("not enough memory to read the trace", "close other programs, or read it on a larger machine")
