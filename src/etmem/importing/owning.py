"""Whose memory a call stack is, and what for, where nothing else is known of it.

The innermost function that is listed decides: an allocator of ExecuTorch's, a delegate's own method, a phase. What no
phase and no planned memory of ExecuTorch is on the stack of is the application's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from etmem.analysis.by_stack import backend_of
from etmem.analysis.function_names import own_category, qualified
from etmem.delegates import Description
from etmem.delegates.description import ANY_FUNCTION
from etmem.model.words import EXECUTORCH, HOST, Category, PhaseKind, delegate

UNKNOWN = "unknown"
"""The owner of what has no name on its call stack."""
_PHASES = {
    "executorch::runtime::Program::load": PhaseKind.PROGRAM_LOAD,
    "executorch::runtime::Program::load_method": PhaseKind.METHOD_LOAD,
    "executorch::runtime::Method::load": PhaseKind.METHOD_LOAD,
    "executorch::runtime::Method::execute": PhaseKind.INFERENCE,
}
_MODULE_LOAD = "executorch::extension::module::Module::load_method"
_NAMED_DATA = re.compile(r"executorch::(?:\w+::)*\w*DataMap::get_data")


@dataclass(frozen=True)
class Place:
    owner: str
    category: Category
    phase: PhaseKind | None
    operator: str | None = None


def place(symbols: Sequence[str], descriptions: Mapping[str, Description]) -> Place:
    """``symbols`` are mangled or not, innermost first."""
    if not any(symbols):
        return Place(UNKNOWN, Category.OTHER, None)
    functions = [qualified(symbol) for symbol in symbols]
    phase = next((_PHASES[function] for function in functions if function in _PHASES), None)
    for at in range(len(symbols)):
        found = _listed(at, symbols, functions, descriptions, phase)
        if found is not None:
            return found
    return Place(HOST, Category.OTHER, None)


def _listed(
    at: int,
    symbols: Sequence[str],
    functions: Sequence[str],
    descriptions: Mapping[str, Description],
    phase: PhaseKind | None,
) -> Place | None:
    """What one function on the stack says; None where it is not listed."""
    function = functions[at]
    own = own_category(function, inference=phase is PhaseKind.INFERENCE)
    if own is Category.PROGRAM:
        return _loaded(symbols[at:], functions[at:], descriptions, phase)
    if own is not None:
        return Place(EXECUTORCH, own, phase)
    backend = backend_of([symbols[at]], descriptions)
    if backend is not None:
        return _delegate(backend, symbols[: at + 1], descriptions, phase)
    if function == _MODULE_LOAD and phase is None:
        return Place(EXECUTORCH, Category.PLANNED_MEMORY, phase)
    if function in _PHASES:
        kernel = phase is PhaseKind.INFERENCE and at > 0
        return Place(EXECUTORCH, Category.KERNEL_SCRATCH if kernel else Category.METADATA, phase)
    return None


def _loaded(
    symbols: Sequence[str], functions: Sequence[str], descriptions: Mapping[str, Description], phase: PhaseKind | None
) -> Place:  # fmt: skip
    """A piece of the program's file, copied by a data loader: a delegate's when that asked for it."""
    asked = any(_NAMED_DATA.fullmatch(function) for function in functions)
    backend = backend_of(symbols, descriptions)
    if asked and backend is not None:
        return Place(delegate(backend), Category.ORIGINAL_WEIGHTS, phase)
    return Place(EXECUTORCH, Category.PROGRAM, phase)


def _delegate(
    backend: str, inside: Sequence[str], descriptions: Mapping[str, Description], phase: PhaseKind | None
) -> Place:  # fmt: skip
    description = descriptions.get(backend)
    if description is None:
        return Place(delegate(backend), Category.METADATA, phase)
    found = description.match(inside, ANY_FUNCTION)
    return Place(delegate(backend), found.category, phase, found.operator)
