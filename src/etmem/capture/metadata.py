"""What the launcher knows and the process does not, as notes in the trace.

The launcher passes notes in the environment variable ``ETMEM_NOTES`` (``key=value``, each ended by the
unit separator), which the agent records. Under ``capture`` stands the JSON of ``CaptureMetadata``; the
exit status follows when the process has ended, as a trailing note ``exit_status``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from etmem.model.codec import CodecError, from_data, to_data
from etmem.model.errors import TraceError
from etmem.model.summary import Environment, Issue, Target

NOTES_VARIABLE = "ETMEM_NOTES"
CAPTURE_NOTE = "capture"
EXIT_STATUS_NOTE = "exit_status"
VERSION = 1
_SEPARATOR = "\x1f"


@dataclass(frozen=True)
class CaptureMetadata:
    target: Target
    environment: Environment
    programs: tuple[str, ...]
    """Paths as the user gave them; empty when the command's programs are not known beforehand."""
    issues: tuple[Issue, ...] = ()
    version: int = VERSION


def encode(metadata: CaptureMetadata) -> str:
    """The text of the ``capture`` note."""
    return json.dumps(to_data(metadata), separators=(",", ":"))


def decode(text: str) -> CaptureMetadata:
    """The metadata of a ``capture`` note. Raises TraceError."""
    try:
        return from_data(CaptureMetadata, json.loads(text), "capture")
    except (CodecError, ValueError) as error:
        raise TraceError(
            f"the trace's capture note cannot be read: {error}",
            "the trace was written by another version of etmem, or is damaged",
        ) from error


def notes_variable(notes: Mapping[str, str]) -> str:
    """The value of ``ETMEM_NOTES``."""
    return "".join(f"{key}={value}{_SEPARATOR}" for key, value in notes.items())


def with_exit_status(metadata: CaptureMetadata, note: str | None) -> CaptureMetadata:
    """The metadata completed by the ``exit_status`` note; without one the status stays unknown."""
    if note is None:
        return metadata
    try:
        status = int(note)
    except ValueError:
        raise TraceError(f"the trace's exit status note is {note!r}", "the trace is damaged") from None
    return replace(metadata, environment=replace(metadata.environment, exit_status=status))
