"""Sources asked from the launcher's side: while the process runs, and whenever it tells of a step."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from etmem.capture.trailer import Sample
from etmem.model.errors import EtmemError
from etmem.model.summary import Issue
from etmem.model.words import IssueCode, Severity
from etmem.sources import INTERVAL_SECONDS, Sampler, source

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from etmem.model.words import Unit
    from etmem.sources import MemorySource


def note_of(one: MemorySource, interval_seconds: float = INTERVAL_SECONDS) -> tuple[str, str]:
    """The note of a source that is asked every so often."""
    return f"source.{one.name}", f"{one.what}; asked every {interval_seconds * 1000:g} ms"


def failure(name: str, why: str) -> Issue:
    return Issue(
        IssueCode.SOURCE_FAILED,
        Severity.WARNING,
        f"the source {name} was asked no more: {why}",
        "its figures end there; all that etmem counts itself is complete",
        {"source": name},
    )


class Asking:
    """The sources of one process. Nothing is asked, and no thread started, where there are none."""

    def __init__(self, names: Sequence[str]) -> None:
        """Raises UsageError for a source that there is not, or that cannot be had here."""
        self.samples: list[Sample] = []
        self.notes: Mapping[str, str] = dict(note_of(source(name, os.getpid())) for name in names)
        self._names = names
        self._failures: dict[str, str] = {}
        self._sampler: Sampler | None = None

    def start(self, process: int) -> None:
        if self._names:
            self._sampler = Sampler(tuple(self._made(process)), self._keep)
            self._sampler.start()

    def ask(self) -> None:
        """The process said that something begins or has ended."""
        if self._sampler is not None:
            self._sampler.ask()

    def stop(self) -> tuple[Issue, ...]:
        """What failed."""
        if self._sampler is not None:
            self._sampler.stop()
            self._failures |= self._sampler.failures
        return tuple(failure(name, why) for name, why in self._failures.items())

    def _made(self, process: int) -> Iterable[MemorySource]:
        for name in self._names:
            try:
                yield source(name, process)
            except EtmemError as error:  # the process is gone already, or may not be looked at
                self._failures[name] = error.message

    def _keep(self, name: str, unit: Unit, value: int) -> None:
        self.samples.append(Sample(time.clock_gettime_ns(time.CLOCK_MONOTONIC), name, unit, value))
