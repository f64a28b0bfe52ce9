"""Names of C++ functions, as linkers and as people write them, and what some of ExecuTorch's own say."""

from __future__ import annotations

import re
from functools import cache

from etmem.model.words import Category

_PLANNED = re.compile(r"executorch::extension::(?:\w+::)*Module::make_planned_memory")
_ALLOCATOR = re.compile(r"executorch::extension::(?:\w+::)*\w*Malloc\w*Allocator::allocate\w*")
_LOADER = re.compile(r"executorch::extension::(?:\w+::)*\w*DataLoader::load")


@cache
def qualified(symbol: str) -> str:
    """``executorch::runtime::Method::execute``: a function's name without its parameters, mangled or not."""
    return split(symbol)[0]


@cache
def split(symbol: str) -> tuple[str, str]:
    """The qualified name, and what follows it: parameters, mangled or not."""
    if re.match(r"_ZN[KVRO]*\d", symbol):
        return _split_mangled(symbol)
    name, bracket, rest = symbol.partition("(")
    if symbol.startswith("(anonymous namespace)"):
        inner, bracket, rest = symbol.removeprefix("(anonymous namespace)").partition("(")
        name = f"(anonymous){inner}"
    return name if "<" in name else name.rpartition(" ")[2], bracket + rest


def _split_mangled(symbol: str) -> tuple[str, str]:
    """The parts of a nested name as the Itanium C++ ABI spells them, up to its first template argument or operator."""
    at = re.match(r"_ZN[KVRO]*", symbol).end()  # type: ignore[union-attr]
    parts = []
    while (length := re.compile(r"\d+").match(symbol, at)) is not None:
        at = length.end() + int(length[0])
        part = symbol[length.end() : at]
        parts.append("(anonymous)" if part.startswith("_GLOBAL__N_") else part)
    return "::".join(parts), symbol[at:]


def own_category(function: str, *, inference: bool) -> Category | None:
    """Of ExecuTorch's own memory, by the qualified name of a function that takes it; None for all else."""
    if _PLANNED.fullmatch(function):
        return Category.PLANNED_MEMORY
    if _ALLOCATOR.fullmatch(function):
        return Category.TEMP_ALLOCATOR if inference else Category.METHOD_ALLOCATOR
    return Category.PROGRAM if _LOADER.fullmatch(function) else None
