"""What the ``etmem`` fixture gives to a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from etmem.api import Profile
    from etmem.capture.attached import Recording


class Meter:
    """Profiles models and blocks, and keeps what was measured for the test's marker."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._recordings: list[Recording] = []
        self._profiles: list[Profile] = []
        self._number = 0

    def profile(self, model: str | Path, **options: object) -> Profile:
        """Run a program as ``etmem profile`` does, in a process of its own. The options are those of
        ``etmem.profile``."""
        import etmem

        options.setdefault("output", self._next(Path(model).stem))
        found = etmem.profile(model, **options)
        self._profiles.append(found)
        return found

    @contextmanager
    def block(self) -> Iterator[Recording]:
        """Record what this process does with ExecuTorch inside the ``with``: load the program there too."""
        import etmem

        with etmem.trace(self._next("block")) as recording:
            yield recording
        self._recordings.append(recording)

    @property
    def measured(self) -> tuple[Profile, ...]:
        """Everything that was profiled so far."""
        return (*self._profiles, *(recording.profile for recording in self._recordings))

    def _next(self, stem: str) -> Path:
        self._number += 1
        return self._folder / f"{stem}-{self._number}.etmem"
