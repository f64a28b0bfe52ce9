"""Delegates by call stack, where no decorator stands around a backend: hooks without types, see native/executorch.

A backend is told by the function of its class that the runtime calls: ``init`` with a BackendInitContext, ``execute``
with a BackendExecutionContext, ``destroy`` with a handle. Which instance it was, a stack does not tell.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from functools import cache

import numpy as np

from etmem.analysis.function_names import split
from etmem.analysis.lookup import I64
from etmem.analysis.scopes import ScopeTable
from etmem.analysis.symbols import Symbolizer
from etmem.analysis.threads import Attributed
from etmem.trace.tables import Blocks, Trace

NOTE = "hooks.untyped"
"""What such hooks note of themselves."""

_CALLED = {"init": "BackendInitContext", "execute": "BackendExecutionContext"}
_HANDLE = ("EPv", "(void*) const", "(void*)")
"""The parameters of destroy."""


def asked_for(trace: Trace) -> bool:
    return trace.note(NOTE) is not None


@cache
def backend_class(symbol: str) -> str | None:
    """``XnnpackBackend`` of its ``init``, ``execute`` or ``destroy``, mangled or not; None for all else."""
    function, rest = split(symbol)
    names = function.split("::")
    if len(names) < 2:
        return None
    context = _CALLED.get(names[-1])
    # Only a backend's takes the context by reference: Method::init and Module::execute are others.
    if context is not None and rest.startswith(("ER", "(")) and context in rest:
        return names[-2]
    return names[-2] if names[-1] == "destroy" and rest in _HANDLE else None


def backend_of(symbols: Iterable[str], known: Collection[str]) -> str | None:
    """The backend id on a call stack, innermost frame first.

    ``known`` are ids, or descriptions by id, which may name the class; one that is none of them, not even in other
    letters, passes under its own name.
    """
    found = next(filter(None, map(backend_class, symbols)), None)
    if found is None or found in known:
        return found
    described = known.items() if isinstance(known, Mapping) else ()
    by_class = (name for name, description in described if getattr(description, "class_name", "") == found)
    return next(by_class, None) or next((name for name in known if name.casefold() == found.casefold()), found)


def delegate_rows(
    trace: Trace, blocks: Blocks, who: Attributed, table: ScopeTable, symbolizer: Symbolizer, known: Collection[str]
) -> Mapping[str, I64]:
    """The rows of the blocks that were allocated under a backend's functions, inside a phase, by backend id."""
    inside = (blocks.stack != 0) & (table.phase[who.scope] != 0) & (table.delegate[who.scope] == 0)
    rows = np.flatnonzero(inside)
    stacks, inverse = np.unique(blocks.stack[rows], return_inverse=True)
    groups: dict[str, list[int]] = defaultdict(list)
    for index, stack in enumerate(stacks.tolist()):
        backend = backend_of(symbolizer.stack(trace.stacks.get(stack, ())), known)
        if backend is not None:
            groups[backend].append(index)
    return {backend: rows[np.isin(inverse, indices)] for backend, indices in groups.items()}
