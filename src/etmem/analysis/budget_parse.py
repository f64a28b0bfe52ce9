"""A budget from its TOML, checked: every mistake is told with the key it is in."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NoReturn, TypeVar

from etmem.analysis.budget_model import RSS_TOLERANCE, SCHEMA, Budget, Limit, Measure, Tolerance, What
from etmem.model.errors import InputError
from etmem.model.words import EXECUTORCH, HOST, PROFILER, Category, is_counted

E = TypeVar("E", bound=StrEnum)

_SIZE = re.compile(r"\s*([0-9][0-9_,]*(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*")
_UNITS = {
    "": 1, "b": 1,
    "kb": 10**3, "mb": 10**6, "gb": 10**9,
    "kib": 2**10, "mib": 2**20, "gib": 2**30,
}  # fmt: skip
_PERCENT = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*%\s*")
_KEYS = ("what", "measure", "owner", "category", "method", "max", "baseline", "tolerance", "name")
_TOP = ("schema", "repeats", "limit")
_MAX_REPEATS = 1000

_RUNTIME = frozenset(
    {
        Category.PROGRAM, Category.CONSTANTS, Category.PLANNED_MEMORY, Category.METHOD_ALLOCATOR,
        Category.TEMP_ALLOCATOR, Category.KERNEL_SCRATCH,
    }
)  # fmt: skip
_DELEGATES = frozenset(
    {Category.ORIGINAL_WEIGHTS, Category.PACKED_WEIGHTS, Category.WORKSPACE, Category.OPERATOR_BUFFERS}
)
_HOST = frozenset({Category.INPUTS_OUTPUTS, Category.STACKS, Category.OTHER})
_NEVER = {
    "": _HOST,
    EXECUTORCH: _DELEGATES | _HOST | {Category.LIBRARIES},
    HOST: _RUNTIME | _DELEGATES | {Category.METADATA},
}
"""Categories by the owner that never has them; the empty one stands for all that is counted."""
_NEVER_DELEGATES = _RUNTIME | {Category.INPUTS_OUTPUTS, Category.STACKS}


def parse_budget(text: str) -> Budget:
    """Raises InputError with the place of the first mistake: ``limit[2].max``."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"the budget is not TOML: {error}", "docs/budgets.md has an example") from error
    if data.get("schema") != SCHEMA:
        _refuse("schema", f"is {data.get('schema')!r}, not {SCHEMA!r}")
    _check_keys(data, _TOP, "")
    repeats = data.get("repeats", 1)
    if not _is_int(repeats) or not 1 <= repeats <= _MAX_REPEATS:
        _refuse("repeats", f"is {repeats!r}, not a number from 1 to {_MAX_REPEATS}")
    limits = data.get("limit")
    if not isinstance(limits, list) or not limits or not all(isinstance(limit, dict) for limit in limits):
        _refuse("limit", "is missing: a budget without [[limit]] tables would pass anything")
    return Budget(tuple(parse_limit(limit, f"limit[{at}]") for at, limit in enumerate(limits)), repeats)


def parse_limit(table: Mapping[str, Any], where: str) -> Limit:
    """One limit. Raises InputError."""
    _check_keys(table, _KEYS, f"{where}.")
    what = _word(What, table.get("what"), f"{where}.what")
    measure = _word(Measure, table.get("measure", Measure.PRIVATE.value), f"{where}.measure")
    owner, method = _text(table, "owner", where), _text(table, "method", where)
    category = table.get("category")
    limit = Limit(
        what=what,
        measure=measure,
        owner=owner,
        category=_word(Category, category, f"{where}.category") if category is not None else None,
        method=method,
        max=_amount(table["max"], measure, f"{where}.max") if "max" in table else None,
        baseline=_text(table, "baseline", where),
        tolerance=_tolerance(table.get("tolerance"), measure, f"{where}.tolerance"),
        name=_text(table, "name", where) or "",
    )
    _check(limit, where)
    return limit


def _check(limit: Limit, where: str) -> None:
    if (limit.max is None) == (limit.baseline is None):
        _refuse(where, "needs either max or baseline")
    owner = limit.owner
    if owner is not None and owner != HOST and (owner == PROFILER or not is_counted(owner)):
        _refuse(f"{where}.owner", f"is {owner!r}, not executorch, host or delegate:BACKEND")
    _check_category(limit, where)
    refined = limit.owner is not None or limit.category is not None
    if limit.measure is Measure.RSS:
        if refined:
            _refuse(where, "is on rss, which the kernel does not tell by owner or category")
        check_rss_tolerance(limit, limit.max, where)
    if limit.what is What.STEADY and limit.measure in (Measure.ALLOCATED, Measure.ALLOCATIONS):
        _refuse(where, f"is on {limit.measure.value} at an instant: steady has only private, live and rss")
    if limit.measure in (Measure.ALLOCATED, Measure.ALLOCATIONS) and refined:
        told = limit.measure is Measure.ALLOCATIONS and limit.what is What.LATER_INFERENCE
        if not told or limit.category is not None or not (owner or "").startswith("delegate:"):
            _refuse(where, "is on what one owner allocates, which is told for delegates' allocations in "
                    "later_inference only")  # fmt: skip


def _check_category(limit: Limit, where: str) -> None:
    """A category that its owner never has is zero, and its limit always kept."""
    if limit.category is None:
        return
    never = _NEVER.get(limit.owner or "", _NEVER_DELEGATES)
    if limit.category in never:
        owner = limit.owner or "ExecuTorch or a delegate"
        _refuse(f"{where}.category", f"is {limit.category.value}, which {owner} never has")


def check_rss_tolerance(limit: Limit, base: int | None, where: str) -> None:
    """Raises InputError for a limit on RSS that would flap. ``base`` is null while a baseline is not known."""
    tolerance = limit.tolerance
    if tolerance.percent is not None and base is None:
        return
    if tolerance.of(base or 0) < RSS_TOLERANCE:
        given = f"{tolerance.of(base or 0):,} B"
        _refuse(
            f"{where}.tolerance",
            f"is {given} on rss: less than {RSS_TOLERANCE:,} B flaps, as library pages alone move RSS by half of that",
        )


def parse_size(value: object, where: str) -> int:
    """Bytes of ``20 MiB``, ``1.5MB`` or a whole number. Raises InputError."""
    if _is_int(value):
        count: int = value  # type: ignore[assignment]
        if count >= 0:
            return count
    match = _SIZE.fullmatch(value) if isinstance(value, str) else None
    unit = _UNITS.get(match[2].lower()) if match is not None else None
    if match is None or unit is None:
        _refuse(where, f"is {value!r}, not a size such as 20 MiB, 1.5 MB or 4096")
    number = match[1].replace(",", "").replace("_", "")
    return round(float(number) * unit) if "." in number else int(number) * unit


def _amount(value: object, measure: Measure, where: str) -> int:
    if measure is Measure.ALLOCATIONS:
        if not _is_int(value) or value < 0:  # type: ignore[operator]
            _refuse(where, f"is {value!r}, not a number of allocations")
        return value  # type: ignore[return-value]
    return parse_size(value, where)


def _tolerance(value: object, measure: Measure, where: str) -> Tolerance:
    if value is None:
        return Tolerance()
    match = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    if match is not None:
        return Tolerance(percent=float(match[1]))
    return Tolerance(bytes=_amount(value, measure, where))


def parse_tolerance(value: object, measure: Measure = Measure.PRIVATE, where: str = "tolerance") -> Tolerance:
    """``2%`` or a size. Raises InputError."""
    return _tolerance(value, measure, where)


def _word(kind: type[E], value: object, where: str) -> E:
    if value is None:
        _refuse(where, f"is missing; it is one of {', '.join(kind)}")
    found = next((word for word in kind if word.value == value), None)
    if found is None:
        _refuse(where, f"is {value!r}{_near(str(value), [word.value for word in kind])}, none of {', '.join(kind)}")
    return found


def _text(table: Mapping[str, Any], key: str, where: str) -> str | None:
    value = table.get(key)
    if value is not None and (not isinstance(value, str) or not value):
        _refuse(f"{where}.{key}", f"is {value!r}, not a text")
    return value


def _check_keys(table: Mapping[str, Any], known: tuple[str, ...], prefix: str) -> None:
    # A misspelt limit that is ignored is a limit that always passes.
    for key in table:
        if key not in known:
            _refuse(f"{prefix}{key}", f"is not known{_near(key, list(known))}; there are {', '.join(known)}")


def _near(word: str, known: list[str]) -> str:
    close = difflib.get_close_matches(word, known, 1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _refuse(where: str, what: str) -> NoReturn:
    raise InputError(f"budget: {where} {what}", f"docs/budgets.md describes {SCHEMA}")
