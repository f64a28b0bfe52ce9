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
from etmem.trace.passes import Column, HeapBlocks, LiveRows, Matcher, Passes, Records, Spans, Survey
from etmem.trace.tables import I64, U32, U64, Events

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
_BLOCKS = ("begin", "end", "address", "bytes", "scope", "stack", "thread")

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
        *((name, c_uint64) for name in ("capacity", "count", "unmatched_frees", "replaced_allocations")),
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
        self.match_feed = native.etmem_match_feed
        self.match_feed.argtypes = (c_void_p, POINTER(_Columns), c_uint64, POINTER(_Blocks), c_void_p)

        self._timeline = native.etmem_read_timeline
        self._timeline.argtypes = (
            c_void_p,
            c_void_p,
            c_void_p,
            c_void_p,
            c_uint64,
            c_uint64,
            c_uint64,
            c_void_p,
            c_void_p,
        )
        self._timeline.restype = c_uint64

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

    def matcher(self, capacity: int) -> Matcher:
        return NativeMatcher(self, capacity)

    def timeline(self, rows: LiveRows, since: int, until: int) -> tuple[U64, I64]:
        if until - since > _DENSE * (len(rows.begin) + 1):  # a table of all stamps could be larger than any memory
            return self._model.timeline(rows, since, until)
        values = np.zeros(until - since + 2, np.int64)
        stamps = np.empty(len(values), np.uint64)
        columns = [np.ascontiguousarray(column) for column in (rows.begin, rows.end, rows.weights, rows.wanted)]
        place = (*(column.ctypes.data for column in columns), len(rows.begin))
        kept = self._timeline(*place, since, until, stamps.ctypes.data, values.ctypes.data)
        return stamps[:kept], values[:kept]


class NativeMatcher:
    """See ``Matcher``. The rows that stay unused cost address space only."""

    def __init__(self, native: NativePasses, capacity: int) -> None:
        self._native = native
        self._state = native.match_new()
        if not self._state:
            raise _no_memory()
        self._arrays: dict[str, Column] = {
            name: np.empty(capacity, np.uint32 if name in _DTYPES and _DTYPES[name] is np.uint32 else np.uint64)
            for name in _BLOCKS
        }
        self._blocks = _Blocks(**{name: array.ctypes.data for name, array in self._arrays.items()}, capacity=capacity)

    def __del__(self) -> None:
        if getattr(self, "_state", None):
            self._native.match_delete(self._state)
            self._state = None

    def feed(self, events: Events) -> npt.NDArray[np.bool_]:
        held = {field.name: np.ascontiguousarray(getattr(events, field.name)) for field in fields(Events)}
        columns = _Columns(**{name: array.ctypes.data for name, array in held.items()})
        undone = np.zeros(len(events), bool)
        status = self._native.match_feed(
            self._state, byref(columns), len(events), byref(self._blocks), undone.ctypes.data
        )
        if status == _NO_MEMORY:
            raise _no_memory()
        if status != _OK:
            raise ValueError("more allocations than the matcher was made for")
        return undone

    def finish(self) -> HeapBlocks:
        return HeapBlocks(
            **{name: self._arrays[name][: self._blocks.count] for name in _BLOCKS},
            unmatched_frees=self._blocks.unmatched_frees,
            replaced_allocations=self._blocks.replaced_allocations,
        )


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
