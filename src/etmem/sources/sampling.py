"""Asking sources again and again while a program runs, and keeping what changed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from etmem.model.words import Unit
    from etmem.sources.model import MemorySource

INTERVAL_SECONDS = 0.01

Keep = Callable[[str, "Unit", int], None]
"""Gets ``SOURCE.NAME``, unit and value whenever a value is another than the last one, on the thread that asked."""


class Sampler:
    """Asks from a thread of its own, and whenever ``ask`` is called.

    A value holds until the next one, so one that has not changed is not kept. A source that raises is asked no more;
    ``failures`` says why.
    """

    def __init__(
        self,
        sources: Sequence[MemorySource],
        keep: Keep,
        interval_seconds: float = INTERVAL_SECONDS,
        inside: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        """``inside`` makes what the asking thread runs in for as long as it asks."""
        self.failures: dict[str, str] = {}
        self.asked = 0
        self._sources = list(sources)
        self._keep = keep
        self._interval = interval_seconds
        self._inside = inside
        self._last: dict[str, int] = {}
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="etmem-sources", daemon=True)

    def start(self) -> None:
        """The first values are there when it returns."""
        self.ask()
        if self._sources:
            self._thread.start()

    def stop(self) -> None:
        """Asks a last time."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        self.ask()

    def ask(self) -> None:
        """Ask now. Where another thread is asking, that will do."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            self.asked += 1
            for source in tuple(self._sources):
                self._ask(source)
        finally:
            self._lock.release()

    def _ask(self, source: MemorySource) -> None:
        try:
            for reading in source.read():
                name = f"{source.name}.{reading.name}"
                if self._last.get(name) != reading.value:
                    self._last[name] = reading.value
                    self._keep(name, reading.unit, int(reading.value))
        except Exception as error:  # noqa: BLE001 -- a plug-in's: it must not end the profiled program
            self._sources.remove(source)
            self.failures[source.name] = f"{type(error).__name__}: {error}"

    def _run(self) -> None:
        with self._inside():
            while not self._over.wait(self._interval):
                self.ask()
