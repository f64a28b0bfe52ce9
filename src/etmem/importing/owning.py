"""Whose memory a call stack is, and what for, where nothing else is known of it.

The innermost function that is listed decides: an allocator of ExecuTorch's, a delegate's own method, a phase. What no
phase and no planned memory of ExecuTorch is on the stack of is the application's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

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
_PLANNED = "executorch::extension::module::Module::make_planned_memory"
_MODULE_LOAD = "executorch::extension::module::Module::load_method"
_ALLOCATORS = re.compile(r"executorch::extension::(?:\w+::)*Malloc\w*Allocator::\w+")
_LOADERS = re.compile(r"executorch::extension::(?:\w+::)*\w*DataLoader::load")
_NAMED_DATA = re.compile(r"executorch::(?:\w+::)*\w*DataMap::get_data")
_CONTEXTS = {"init": "BackendInitContext", "execute": "BackendExecutionContext"}


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
    if _ALLOCATORS.fullmatch(function):
        category = Category.TEMP_ALLOCATOR if phase is PhaseKind.INFERENCE else Category.METHOD_ALLOCATOR
        return Place(EXECUTORCH, category, phase)
    if _LOADERS.fullmatch(function):
        return _loaded(symbols[at:], functions[at:], descriptions, phase)
    backend = backend_of(symbols[at], descriptions)
    if backend is not None:
        return _delegate(backend, symbols[: at + 1], descriptions, phase)
    if function == _PLANNED or (function == _MODULE_LOAD and phase is None):
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
    backend = next(filter(None, (backend_of(symbol, descriptions) for symbol in symbols)), None)
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


def backend_of(symbol: str, descriptions: Mapping[str, Description]) -> str | None:
    """The backend whose ``init`` or ``execute`` a symbol is: by its class, which is mostly called as the backend is."""
    class_name = _backend_class(symbol)
    if class_name is None:
        return None
    by_class = {found.class_name: backend for backend, found in descriptions.items() if found.class_name}
    return by_class.get(class_name, class_name)


@cache
def _backend_class(symbol: str) -> str | None:
    parts = qualified(symbol).split("::")
    context = _CONTEXTS.get(parts[-1])
    # Only a backend's takes the context: Method::init and Module::execute are others.
    return parts[-2] if context is not None and len(parts) > 1 and context in symbol else None


@cache
def qualified(symbol: str) -> str:
    """``executorch::runtime::Method::execute``: a function's name without its parameters, mangled or not."""
    if symbol.startswith("_ZN"):
        return "::".join(_components(symbol))
    name = symbol.partition("(")[0]
    return name.rpartition(" ")[2] if "<" not in name else name


def _components(symbol: str) -> list[str]:
    """The parts of a nested name as the Itanium C++ ABI spells them, up to the first template argument or operator."""
    at = 3
    while symbol[at : at + 1] in ("K", "V", "R", "O"):
        at += 1
    parts = []
    while match := re.compile(r"\d+").match(symbol, at):
        end = match.end() + int(match[0])
        part = symbol[match.end() : end]
        parts.append("(anonymous)" if part.startswith("_GLOBAL__N_") else part)
        at = end
    return parts
