"""What Python code tells of itself while it is recorded: scopes, tags and values.

It is a client of the C ABI (``native/include/etmem/etmem.h``) like any other: without an agent in the process every
call is a look at one variable.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from etmem.model.words import Unit

if TYPE_CHECKING:
    from types import TracebackType

_TAG, _PROFILER = 7, 8
"""Kinds of scopes."""
_UNITS = {Unit.NUMBER: 0, Unit.BYTES: 1}
_TRACE = "ETMEM_TRACE"
"""Set in every process that was started to be recorded."""

_Id = ctypes.c_uint32


class _Table(ctypes.Structure):
    """The beginning of ``struct etmem_api``: later versions only append."""

    _fields_ = (
        ("version", ctypes.c_uint32),
        ("bytes", ctypes.c_uint32),
        ("recording", ctypes.CFUNCTYPE(ctypes.c_int)),
        ("string", ctypes.CFUNCTYPE(_Id, ctypes.c_char_p, ctypes.c_size_t)),
        ("scope_begin", ctypes.CFUNCTYPE(_Id, _Id, _Id, ctypes.c_int64, ctypes.c_int64, _Id)),
        ("scope_end", ctypes.CFUNCTYPE(None, _Id, ctypes.c_int)),
        ("_blocks", ctypes.c_void_p * 9),
        ("expect_inferences", ctypes.CFUNCTYPE(None, ctypes.c_uint64)),
        ("_threads", ctypes.c_void_p * 4),
        ("counter", ctypes.CFUNCTYPE(None, _Id, _Id, ctypes.c_int64)),
    )


class _Client:
    """The table of this process, looked for once; given by ``adopt`` where an agent comes later."""

    def __init__(self) -> None:
        self._table: _Table | None = None
        self._looked = False
        self._strings: dict[str, int] = {}

    def adopt(self, agent: ctypes.CDLL) -> None:
        self._table, self._looked = _Table.in_dll(agent, "etmem_api_v1"), True
        self._strings.clear()

    def begin(self, kind: int, name: str, category: str) -> int:
        """0 where nothing is recorded."""
        table = self._active()
        if table is None:
            return 0
        scope: int = table.scope_begin(kind, self._string(table, name), self._string(table, category), 0, 0)
        return scope

    def end(self, scope: int) -> None:
        if scope and self._table is not None:
            self._table.scope_end(scope, 0)

    def count(self, name: str, unit: Unit, value: int) -> None:
        table = self._active()
        if table is not None and table.bytes >= _Table.counter.offset + _Table.counter.size:
            table.counter(self._string(table, name), _UNITS[unit], value)

    def expect_inferences(self, number: int) -> None:
        table = self._found()
        if table is not None:
            table.expect_inferences(number)

    def _active(self) -> _Table | None:
        table = self._found()
        return table if table is not None and table.recording() else None

    def _found(self) -> _Table | None:
        if not self._looked:
            self._look()
        return self._table

    def _look(self) -> None:
        self._looked = True
        if _TRACE in os.environ:
            try:
                self._table = _Table.in_dll(ctypes.CDLL(None), "etmem_api_v1")
            except (OSError, ValueError):  # a child process, which has the variable and no agent
                self._table = None

    def _string(self, table: _Table, text: str) -> int:
        number = self._strings.get(text)
        if number is None:
            data = text.encode("utf-8", "replace")
            number = self._strings[text] = table.string(data, len(data))
        return number


_client = _Client()
adopt = _client.adopt
"""Of the agent that has begun to record this process."""
count = _client.count
"""A value of a named series, from now on. ``etmem.sources`` uses it for what is asked inside of the process."""
expect_inferences = _client.expect_inferences
"""How many are to come, so that the agent knows the last one."""


class Scope:
    """What the ``with`` block allocates on its thread is filed under a name. A no-op where nothing is recorded."""

    __slots__ = ("_category", "_id", "_name")

    def __init__(self, name: str, category: str = "") -> None:
        self._name, self._category, self._id = name, category, 0

    def __enter__(self) -> Self:
        self._id = _client.begin(_TAG, self._name, self._category)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _client.end(self._id)


def scope(name: str) -> Scope:
    """``with etmem.scope("preprocess"):`` says what this thread is doing.

    It changes neither owner nor category: ``etmem report --full`` lists what each scope allocated, and the paths of
    flame graphs have it. Scopes nest, on their thread; a block must not be suspended (``await``, ``yield``) while
    others of the thread go on.
    """
    return Scope(name)


def tag(category: str) -> Scope:
    """``with etmem.tag("weights"):`` says what it is that this thread allocates.

    A category of docs/reference/summary.md (``packed_weights``, ``workspace``, ``inputs_outputs``, ...) is what the
    blocks are filed under; any other word is a name, as with ``scope``.
    """
    return Scope(category, category)


@contextmanager
def profilers_own() -> Iterator[None]:
    """What is allocated in it is the profiler's."""
    own = _client.begin(_PROFILER, "sources", "")
    try:
        yield
    finally:
        _client.end(own)
