"""``etmem.bundle/1``: what a bundle holds, and how each file's integrity is told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SCHEMA = "etmem.bundle/1"
MANIFEST = "manifest.json"
SUMMARY = "summary.json"
ENVIRONMENT = "environment.json"
COMMAND = "command.json"
PLAN = "plan.json"
BLOCKS = "blocks.json"
TRACE = "trace.etmem"
NAMES = (SUMMARY, BLOCKS, ENVIRONMENT, COMMAND, PLAN, TRACE)
"""All that a bundle may hold besides its manifest."""


@dataclass(frozen=True)
class FileEntry:
    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    etmem: str
    """The version that wrote it."""
    redacted: bool
    """Paths, user and host names were taken out; the trace, which holds them as they were, was left out."""
    files: tuple[FileEntry, ...]
    schema: str = SCHEMA


@dataclass(frozen=True)
class Bundle:
    """A bundle whose files agree with its manifest."""

    manifest: Manifest
    folder: Path

    @property
    def summary(self) -> Path:
        return self.folder / SUMMARY

    @property
    def blocks(self) -> Path | None:
        """Every block at the peaks: a diff needs neither the trace nor the libraries that it was made with."""
        return self._file(BLOCKS)

    @property
    def trace(self) -> Path | None:
        """None in a redacted bundle."""
        return self._file(TRACE)

    def _file(self, name: str) -> Path | None:
        return self.folder / name if any(entry.name == name for entry in self.manifest.files) else None
