"""A quick look into a raw trace, before it is finished: what the process turned out to be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from etmem.model.errors import TraceError
from etmem.trace.layout import MetaType
from etmem.trace.reader import open_mapped, walk
from etmem.trace.tables import ScopeKind

if TYPE_CHECKING:
    from pathlib import Path

_LIBRARY_NOTE = "executorch.library"
_DELEGATE_CALL = "DELEGATE_CALL"


@dataclass(frozen=True)
class Seen:
    phases: bool
    """Whether any phase of ExecuTorch began."""
    library: str | None
    """The library that defines the runtime, where one was met."""
    backends: frozenset[str] = frozenset()
    operators: frozenset[str] = frozenset()
    """Operators that were run outside of delegates."""


def seen(raw: Path) -> Seen:
    """What a raw trace says about its process. A trace that cannot be read says nothing."""
    try:
        entries = walk(open_mapped(raw)).entries
    except TraceError:
        return Seen(phases=False, library=None)
    strings = {entry.fields[0]: entry.tail.decode(errors="surrogateescape") for entry in entries[MetaType.STRING]}
    notes = {strings.get(entry.fields[0]): strings.get(entry.fields[1]) for entry in entries[MetaType.NOTE]}
    scopes = {(entry.fields[2], strings.get(entry.fields[3], "")) for entry in entries[MetaType.SCOPE_BEGIN]}
    return Seen(
        phases=any(ScopeKind(kind).is_phase for kind, _ in scopes),
        library=notes.get(_LIBRARY_NOTE),
        backends=frozenset(name for kind, name in scopes if kind == ScopeKind.DELEGATE),
        operators=frozenset(name for kind, name in scopes if kind == ScopeKind.INSTRUCTION) - {_DELEGATE_CALL},
    )
