"""What is known about one backend's memory: how its call stacks tell categories, what instances share."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING

from etmem.model.words import Category

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FUNCTION_GROUPS: dict[str, frozenset[str]] = {
    "aligned": frozenset({"posix_memalign", "aligned_alloc", "memalign", "valloc", "pvalloc"}),
    "plain": frozenset({"malloc", "calloc"}),
    "realloc": frozenset({"realloc", "reallocarray"}),
    "mmap": frozenset({"mmap"}),
}
"""Names that a rule may use for the function that allocated."""


ANY_FUNCTION = "*"
"""For ``match``, where it is not known which function allocated: in a profile of another profiler."""

CATEGORIES = (
    Category.ORIGINAL_WEIGHTS,
    Category.PACKED_WEIGHTS,
    Category.WORKSPACE,
    Category.OPERATOR_BUFFERS,
    Category.METADATA,
)
"""What a rule may file memory under: what a delegate allocates for itself."""


class ThreadRule(StrEnum):
    """Whose the threads are that start while the backend works."""

    POOL = "pool"
    """A pool that serves everybody: they take the scope of whoever runs."""
    OWN = "own"
    """The backend's, for life."""


class Evidence(StrEnum):
    """How a description came about."""

    RUN = "run"
    """Its figures were compared with what a run counts."""
    READING = "reading"
    """Written from the backend's source; nothing of it ran."""


@dataclass(frozen=True)
class Tested:
    """What a description rests on."""

    by: Evidence
    what: str
    """What ran, or what was read and what could not run."""
    sources: tuple[str, ...] = ()
    """``file: function`` of the backend's source that it was read from."""


@dataclass(frozen=True)
class Rule:
    """If the function ``symbol`` is on the stack, what it allocates is ``category``.

    ``symbol`` is a regular expression for the whole (mangled) name; a group named ``operator`` tells which
    operator the memory is for.
    """

    symbol: re.Pattern[str]
    functions: frozenset[str] | None
    """The functions that have to have allocated; None for any."""
    category: Category
    object: str | None = None
    """The object that instances may share: ``workspace``, ``weight_cache``."""


@dataclass(frozen=True)
class Share:
    """An object that instances may share, and the option that decides."""

    object: str
    option: str
    by_default: bool
    """Shared in the stock wheel."""
    note: str


@dataclass(frozen=True)
class Dry:
    """How a backend runs without computing."""

    symbol: str | None
    """The function that answers success instead; None where the backend cannot be run dry."""
    reason: str
    """What still happens, or why it cannot."""


@dataclass(frozen=True)
class Match:
    """What a call stack says of a block."""

    category: Category
    operator: str | None
    object: str | None


_NO_MATCH = Match(Category.METADATA, None, None)


@dataclass(frozen=True)
class Description:
    """One backend. ``rules`` are tried in order; the innermost listed function decides."""

    backend: str
    record_stacks: bool
    """Allocations inside it record their call stack."""
    rules: tuple[Rule, ...]
    threads: ThreadRule
    libraries: tuple[str, ...]
    """Patterns of the file names of its libraries."""
    shares: tuple[Share, ...]
    dry: Dry
    tested: Tested
    class_name: str = ""
    """Of its BackendInterface in C++, where that is not what the backend is called; call stacks have it."""
    tiles: Mapping[str, int] = field(default_factory=dict)
    """Output pixels that a convolution computes per call, by instruction set."""
    estimate: str | None = None
    """``package.module:function`` that tells from a blob what will be allocated (``etmem.delegates.estimating``)."""
    _found: dict[str, tuple[tuple[Rule, str | None], ...]] = field(default_factory=dict, repr=False, compare=False)

    def match(self, symbols: Sequence[str], function: str) -> Match:
        """What a block is for. ``symbols`` are innermost first; ``function`` is the one that allocated.

        The first function that any rule lists decides, even where none of its rules is for ``function``:
        a table that an operator's constructor allocates is metadata, not what its caller may be packing.
        """
        for symbol in symbols:
            listed = self._listed(symbol)
            if listed:
                return next(
                    (
                        Match(rule.category, operator, rule.object)
                        for rule, operator in listed
                        if rule.functions is None or function in rule.functions or function == ANY_FUNCTION
                    ),
                    _NO_MATCH,
                )
        return _NO_MATCH

    def category(self, symbols: Sequence[str], function: str) -> Category:
        return self.match(symbols, function).category

    def operator(self, symbols: Sequence[str], function: str) -> str | None:
        """The operator that a block is for, where the function's name tells: ``convolution2d_nhwc_f32``."""
        return self.match(symbols, function).operator

    def shared(self, symbols: Sequence[str], function: str) -> str | None:
        """The object that a block belongs to and that instances may share."""
        return self.match(symbols, function).object

    def categorize(self, symbols: Sequence[str], function: str) -> tuple[Category, str | None]:
        """Category and operator."""
        found = self.match(symbols, function)
        return found.category, found.operator

    @cached_property
    def library_pattern(self) -> re.Pattern[str]:
        """Matches the file name of a library of this backend; nothing where none is listed."""
        return re.compile("|".join(f"(?:{pattern})" for pattern in self.libraries) or r"(?!)")

    def owns_library(self, path: str) -> bool:
        return self.library_pattern.fullmatch(path.rpartition("/")[2]) is not None

    def _listed(self, symbol: str) -> tuple[tuple[Rule, str | None], ...]:
        """The rules that list a function, with the operator in its name. Stacks repeat the same few names."""
        found = self._found.get(symbol)
        if found is None:
            matches = ((rule, rule.symbol.fullmatch(symbol)) for rule in self.rules) if symbol else ()
            found = tuple((rule, match.groupdict().get("operator")) for rule, match in matches if match)
            self._found[symbol] = found
        return found
