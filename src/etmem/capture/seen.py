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


@dataclass(frozen=True)
class Seen:
    phases: bool
    """Whether any phase of ExecuTorch began."""
    library: str | None
    """The library that defines the runtime, where one was met."""


def seen(raw: Path) -> Seen:
    """What a raw trace says about its process. A trace that cannot be read says nothing."""
    try:
        entries = walk(open_mapped(raw)).entries
    except TraceError:
        return Seen(phases=False, library=None)
    strings = {entry.fields[0]: entry.tail for entry in entries[MetaType.STRING]}
    notes = {strings.get(entry.fields[0]): strings.get(entry.fields[1]) for entry in entries[MetaType.NOTE]}
    library = notes.get(_LIBRARY_NOTE.encode())
    return Seen(
        phases=any(ScopeKind(entry.fields[2]).is_phase for entry in entries[MetaType.SCOPE_BEGIN]),
        library=library.decode(errors="surrogateescape") if library else None,
    )
