"""``etmem.matrix/1``: which options to combine."""

from __future__ import annotations

import difflib
import itertools
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from etmem.matrix.model import SCHEMA, Entry, Matrix, Options
from etmem.model.errors import InputError, UsageError, reason

FLAGS: dict[str, str] = {
    "load_mode": "--load-mode",
    "threads": "--threads",
    "preset": "--preset",
    "iterations": "--iterations",
    "runtime": "--runtime",
    "arch": "--arch",
    "cpu": "--cpu",
    "shapes": "--shape",
    "methods": "--method",
    "backend_options": "--backend-option",
    "data": "--ptd",
}
"""Options with a value: the name in a matrix, and that of ``etmem profile``. Lists repeat the option."""
SWITCHES: dict[str, tuple[str, str | None]] = {"dry": ("--dry", "--no-dry"), "share_arenas": ("--share-arenas", None)}
XNNPACK: dict[str, str] = {
    "weight_cache": "XnnpackBackend:weight_cache_enabled",
    "workspace_sharing": "XnnpackBackend:workspace_sharing_mode",
}
_LISTS = ("shapes", "methods", "backend_options", "data")
NAMES = (*FLAGS, *SWITCHES, *XNNPACK)
_TOP = ("schema", "axes", "entry", "timeout_seconds")
_MOST = 10_000


def parse_matrix(text: str) -> Matrix:
    """Every combination of the axes, then the single entries. Raises InputError with the place of a mistake."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"the matrix is not TOML: {error}", "docs/matrix.md has an example") from error
    if data.get("schema") != SCHEMA:
        _refuse("schema", f"is {data.get('schema')!r}, not {SCHEMA!r}")
    _known(data, _TOP, "")
    timeout = data.get("timeout_seconds")
    if timeout is not None and (not isinstance(timeout, int | float) or isinstance(timeout, bool) or timeout <= 0):
        _refuse("timeout_seconds", f"is {timeout!r}, not a time")
    axes, single = data.get("axes", {}), data.get("entry", [])
    if not isinstance(axes, dict) or not isinstance(single, list):
        _refuse("axes" if not isinstance(axes, dict) else "entry", "is no table")
    choices = [*_combined(axes), *(_single(table, f"entry[{at}]") for at, table in enumerate(single))]
    if not choices:
        _refuse("axes", "and entry are missing: there is nothing to run")
    return Matrix(tuple(choices), timeout)


def read_matrix(path: Path) -> Matrix:
    """Raises InputError."""
    try:
        return parse_matrix(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"cannot read {path}: {reason(error)}", "give a matrix: docs/matrix.md has an example"
        ) from error


def _combined(axes: Mapping[str, object]) -> list[Options]:
    if not axes:
        return []
    _known(axes, NAMES, "axes.")
    values: list[Sequence[object]] = []
    for name, given in axes.items():
        if not isinstance(given, list) or not given:
            _refuse(f"axes.{name}", f"is {given!r}, not a list of the values to try")
        values.append([_value(name, value, f"axes.{name}") for value in given])
    count = 1
    for one in values:
        count *= len(one)
    if count > _MOST:
        _refuse("axes", f"have {count:,} combinations, more than {_MOST:,}")
    return [dict(zip(axes, chosen, strict=True)) for chosen in itertools.product(*values)]


def _single(table: object, where: str) -> Options:
    if not isinstance(table, dict):
        _refuse(where, "is no table")
    _known(table, NAMES, f"{where}.")
    return {name: _value(name, value, f"{where}.{name}") for name, value in table.items()}


def _value(name: str, value: object, where: str) -> object:
    """Plain data of the type that the option has; what it may be is checked by ``etmem profile`` itself."""
    if name in _LISTS:
        items = value if isinstance(value, list) else [value]
        if not all(isinstance(item, str) for item in items):
            _refuse(where, f"has {value!r}, not texts")
        return items
    if name in SWITCHES or name == "weight_cache":
        if not isinstance(value, bool):
            _refuse(where, f"has {value!r}, not true or false")
    elif name in ("threads", "iterations", "workspace_sharing"):
        if not isinstance(value, int) or isinstance(value, bool):
            _refuse(where, f"has {value!r}, not a number")
    elif not isinstance(value, str):
        _refuse(where, f"has {value!r}, not a text")
    return value


def arguments(options: Options) -> list[str]:
    """The options as ``etmem profile`` takes them."""
    found: list[str] = []
    for name, value in options.items():
        if name in XNNPACK:
            word = str(value).lower() if isinstance(value, bool) else str(value)
            found += ["--backend-option", f"{XNNPACK[name]}={word}"]
        elif name in SWITCHES:
            on, off = SWITCHES[name]
            found += [on] if value else [off] if off else []
        else:
            for item in value if isinstance(value, list) else [value]:
                found += [FLAGS[name], str(item)]
    return found


def entries(programs: Sequence[Path], matrix: Matrix) -> tuple[Entry, ...]:
    """Each program with each choice, equal ones once. Raises UsageError for names that cannot be told apart."""
    from etmem.bundle.writing import digest

    by_name: dict[str, Path] = {}
    for program in programs:
        if not program.is_file():
            raise InputError(f"{program} does not exist", "give .pte files")
        if by_name.setdefault(program.name, program).absolute() != program.absolute():
            raise UsageError(f"two programs are called {program.name}", "Rename one: the table goes by names.")
    found = [Entry(program, digest(program), options) for program in by_name.values() for options in matrix.choices]
    return tuple({entry.id: entry for entry in found}.values())


def _known(table: Mapping[str, object], known: Sequence[str], prefix: str) -> None:
    for key in table:
        if key not in known:
            close = difflib.get_close_matches(key, known, 1)
            near = f" (did you mean {close[0]!r}?)" if close else ""
            _refuse(f"{prefix}{key}", f"is not known{near}; there are {', '.join(known)}")


def _refuse(where: str, what: str) -> NoReturn:
    raise InputError(f"matrix: {where} {what}", f"docs/matrix.md describes {SCHEMA}")
