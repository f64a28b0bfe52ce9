"""Which descriptions there are: etmem's own, those of installed packages, and those that the user names.

A later one replaces an earlier one of the same backend as a whole: etmem's own, then the entry points
``etmem.delegates``, then the files in ``ETMEM_DESCRIBE``, then those given with ``--describe``. Two of one backend
at the same place are an error, for which of them holds would be chance.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib.resources import files as resources
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from etmem.delegates.loading import HINT, parse
from etmem.model.errors import InputError, reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from importlib.metadata import EntryPoint
    from importlib.resources.abc import Traversable

    from etmem.delegates.description import Description

VARIABLE = "ETMEM_DESCRIBE"
"""Files, separated as in PATH."""
ENTRY_POINTS = "etmem.delegates"
"""Each names an attribute that is the path of a description: a string, a Path or a resource."""


def descriptions(describe: Sequence[Path] = ()) -> Mapping[str, Description]:
    """All descriptions by backend id; ``describe`` are the user's files. Raises InputError."""
    found = {**_own(), **_of_packages(), **given(describe)}
    return MappingProxyType(found)


def given(describe: Sequence[Path] = ()) -> dict[str, Description]:
    """Those alone that the user names, in the environment or with ``--describe``. Raises InputError."""
    named = tuple(Path(entry) for entry in os.environ.get(VARIABLE, "").split(os.pathsep) if entry)
    return {**_one_each(map(_read, named)), **_one_each(map(_read, describe))}


def stack_backends(describe: Sequence[Path] = ()) -> tuple[str, ...]:
    """The backends whose allocations have to record their call stacks."""
    return tuple(backend for backend, found in descriptions(describe).items() if found.record_stacks)


@cache
def _own() -> Mapping[str, Description]:
    entries = sorted(resources("etmem.delegates").iterdir(), key=lambda entry: entry.name)
    return _one_each((entry.name, entry) for entry in entries if entry.name.endswith(".toml"))


@cache
def _of_packages() -> Mapping[str, Description]:
    if not _any_entry_point():
        return {}
    from importlib.metadata import entry_points

    return _one_each(map(_resolve, sorted(entry_points(group=ENTRY_POINTS))))


def _any_entry_point() -> bool:
    """Whether any package has one: importlib.metadata takes longer to import than a small model to run."""
    header = f"[{ENTRY_POINTS}]".encode()
    for folder in sys.path:
        for path in Path(folder or ".").glob("*-info/entry_points.txt"):
            try:
                if header in path.read_bytes():
                    return True
            except OSError:
                continue
    return False


def _resolve(entry: EntryPoint) -> tuple[str, Traversable]:
    name = f"entry point {entry.name} = {entry.value}"
    try:
        target = entry.load()
    except Exception as error:
        raise InputError(f"{name}: {type(error).__name__}: {error}", "Mend or uninstall the package.") from error
    path = Path(target) if isinstance(target, str) else target
    if not hasattr(path, "read_text"):
        raise InputError(f"{name} is not the path of a description", HINT)
    return name, path


def _read(path: Path) -> tuple[str, Path]:
    return str(path), path


def _one_each(entries: Iterable[tuple[str, Traversable]]) -> dict[str, Description]:
    found: dict[str, tuple[str, Description]] = {}
    for name, entry in entries:
        description = parse(_text(name, entry), name)
        first = found.setdefault(description.backend, (name, description))
        if first[1] is not description:
            raise InputError(f"{name}: a second description of {description.backend}, beside {first[0]}", HINT)
    return {backend: description for backend, (_, description) in found.items()}


def _text(name: str, entry: Traversable) -> str:
    try:
        return entry.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{name} cannot be read: {reason(error)}", HINT) from error
    except UnicodeDecodeError as error:
        raise InputError(f"{name} is not TOML: it is not UTF-8", HINT) from error
