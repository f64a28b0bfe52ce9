"""Sources by name: etmem's own, and the entry points ``etmem.sources`` of installed packages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from etmem.model.errors import EtmemError, InputError, UsageError
from etmem.sources import control_group
from etmem.sources.model import MemorySource

if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.metadata import EntryPoint

    from etmem.sources.model import Factory

ENTRY_POINTS = "etmem.sources"
_OWN: Mapping[str, Factory] = {control_group.NAME: control_group.control_group}


def names() -> tuple[str, ...]:
    """All that may be asked for by name."""
    return tuple(sorted({*_OWN, *_installed()}))


def source(name: str, process: int) -> MemorySource:
    """The source of a name for one process. Raises UsageError where there is none, or where it cannot be had."""
    entry = _installed().get(name)
    factory = _load(entry) if entry is not None else _OWN.get(name)
    if factory is None:
        raise UsageError(f"there is no source {name!r}", f"there are {', '.join(names())}")
    try:
        made = factory(process)
    except EtmemError:
        raise
    except Exception as error:
        raise InputError(f"source {name}: {type(error).__name__}: {error}", "its package says what it needs") from error
    if not isinstance(made, MemorySource):
        raise InputError(f"source {name} has no name, what and read()", "etmem.sources.MemorySource is the protocol")
    return made


def _installed() -> Mapping[str, EntryPoint]:
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}


def _load(entry: EntryPoint) -> Factory:
    try:
        factory: Factory = entry.load()
    except Exception as error:
        name = f"source {entry.name} = {entry.value}"
        raise InputError(f"{name}: {type(error).__name__}: {error}", "mend or uninstall the package") from error
    return factory
