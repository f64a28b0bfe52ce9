"""What a matrix runs, and the row that each entry ends as."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

SCHEMA = "etmem.matrix/1"
ROWS_SCHEMA = "etmem.matrix-rows/1"

Options = Mapping[str, object]
"""By the names of the matrix file: plain data, so that it can be hashed, sent and stored."""


@dataclass(frozen=True)
class Entry:
    """One program with one choice of every option."""

    program: Path
    digest: str
    """SHA-256 of the file: a program that was exported again is run again."""
    options: Options

    @property
    def id(self) -> str:
        """Names the entry's result: the same program with the same options has the same one."""
        text = json.dumps([self.digest, self.program.name, dict(self.options)], sort_keys=True)
        return f"{self.program.stem}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"

    @property
    def label(self) -> str:
        """``load_mode=file threads=1``; empty where nothing is chosen."""
        return " ".join(f"{name}={_word(value)}" for name, value in self.options.items())


def _word(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


class RowStatus(StrEnum):
    OK = "ok"
    FAILED = "failed"
    """It could not be profiled, or a figure is wrong or missing."""
    KILLED = "killed"
    TIMEOUT = "timeout"


@dataclass(frozen=True)
class Row:
    """The figures of one entry: private and file-backed bytes. Null where there is none."""

    id: str
    program: str
    options: dict[str, object]
    status: RowStatus
    message: str
    file_bytes: int
    load_bytes: int | None = None
    first_bytes: int | None = None
    """Peak of the first inference."""
    steady_bytes: int | None = None
    peak_bytes: int | None = None
    peak_private_bytes: int | None = None
    rss_growth_bytes: int | None = None
    seconds: float = 0.0
    digest: str = ""

    @property
    def ratio(self) -> float | None:
        """Peak to file."""
        return self.peak_bytes / self.file_bytes if self.peak_bytes is not None and self.file_bytes else None


@dataclass(frozen=True)
class Matrix:
    choices: tuple[Options, ...]
    """The options of the entries of each program."""
    timeout_seconds: float | None = None


@dataclass(frozen=True)
class Outcome:
    """What comes back from where an entry ran."""

    row: Row
    bundle: bytes | None = field(repr=False, default=None)
