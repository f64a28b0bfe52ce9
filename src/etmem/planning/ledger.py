"""A run on paper: what is allocated and freed, in order, and what is live when that is most."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from etmem.delegates.estimating import Sureness
from etmem.planning.model import Forecast, Line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from etmem.model.words import Category


@dataclass(frozen=True)
class Entry:
    """One allocation, or several at once."""

    owner: str
    instance: str | None
    category: Category
    private_bytes: int
    file_bytes: int = 0
    sure: Sureness = Sureness.EXACT
    low: int | None = None
    """Of a bounded entry; None for its bytes."""
    high: int | None = None
    open: bool = False
    """At least so much: nothing tells how much more."""

    @property
    def bytes(self) -> int:
        return self.private_bytes + self.file_bytes


@dataclass
class Ledger:
    """Live entries, and the most that were live since the last ``begin``."""

    live: dict[int, Entry] = field(default_factory=dict)
    _next: int = 0
    _now: int = 0
    _peak: int = -1
    _at_peak: tuple[Entry, ...] = ()
    _peak_method: str | None = None

    def allocate(self, entry: Entry, method: str | None = None) -> int:
        """A number to free it by."""
        if entry.bytes == 0:
            return -1
        self._next += 1
        self.live[self._next] = entry
        self._now += entry.bytes
        if self._now > self._peak:
            self._peak, self._at_peak, self._peak_method = self._now, tuple(self.live.values()), method
        return self._next

    def free(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            entry = self.live.pop(number, None)
            if entry is not None:
                self._now -= entry.bytes

    def begin(self) -> None:
        """Peaks count from here."""
        self._peak, self._at_peak, self._peak_method = self._now, tuple(self.live.values()), None

    def peak(self, at: str) -> Forecast:
        return forecast(at, self._at_peak, self._peak_method)

    def now(self, at: str) -> Forecast:
        return forecast(at, tuple(self.live.values()), None)


def forecast(at: str, entries: Iterable[Entry], method: str | None) -> Forecast:
    groups: dict[tuple[str, str | None, Category], list[Entry]] = {}
    for entry in entries:
        groups.setdefault((entry.owner, entry.instance, entry.category), []).append(entry)
    lines = tuple(_line(*key, members) for key, members in groups.items())
    return Forecast(
        at=at,
        method=method,
        private_bytes=sum(line.private_bytes for line in lines),
        file_bytes=sum(line.file_bytes for line in lines),
        low_bytes=sum(line.low_bytes for line in lines),
        high_bytes=_sum(line.high_bytes for line in lines),
        sure=max((line.sure for line in lines), key=lambda sure: sure.rank, default=Sureness.EXACT),
        lines=lines,
    )


def _line(owner: str, instance: str | None, category: Category, entries: list[Entry]) -> Line:
    return Line(
        owner=owner,
        instance=instance,
        category=category,
        private_bytes=sum(entry.private_bytes for entry in entries),
        file_bytes=sum(entry.file_bytes for entry in entries),
        low_bytes=sum(entry.bytes if entry.low is None else entry.low for entry in entries),
        high_bytes=_sum(_high(entry) for entry in entries),
        sure=max((entry.sure for entry in entries), key=lambda sure: sure.rank),
    )


def _high(entry: Entry) -> int | None:
    if entry.open:
        return None
    return entry.bytes if entry.high is None else entry.high


def _sum(parts: Iterable[int | None]) -> int | None:
    """None where a part is."""
    known = 0
    for part in parts:
        if part is None:
            return None
        known += part
    return known
