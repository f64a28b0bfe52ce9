"""A run on paper: what is allocated and freed, in order, and what is live when that is most."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from etmem.delegates.estimating import Sureness
from etmem.planning.model import Forecast, Line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

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


Key = tuple[str, str | None, "Category"]


@dataclass
class Ledger:
    """Every allocation and free, in order; what is live at any moment follows from them."""

    steps: list[tuple[int, Entry | None]] = field(default_factory=list)
    """(number, what is allocated under it; None where that is freed)."""
    methods: dict[int, str | None] = field(default_factory=dict)
    """By step."""
    start: int = 0
    """The step that peaks count from."""
    _live: dict[int, Entry] = field(default_factory=dict)

    def allocate(self, entry: Entry, method: str | None = None) -> int:
        """A number to free it by."""
        if entry.bytes == 0 and not entry.open:
            return -1
        number = len(self.steps)
        self.steps.append((number, entry))
        self.methods[number] = method
        self._live[number] = entry
        return number

    def free(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            if self._live.pop(number, None) is not None:
                self.steps.append((number, None))

    def begin(self) -> None:
        """Peaks count from here."""
        self.start = len(self.steps)

    def peak(self, at: str) -> Forecast:
        """The largest moment since ``begin``.

        What is only computed may be a little more at another moment, so that this one is the peak: categories
        that differ between the moments that it can be are an interval.
        """
        place, most = self._highest()
        live = self._replayed(place)
        found = forecast(at, live.values(), self.methods.get(place))
        spread = (found.high_bytes or most) - most
        return _with_doubt(found, self._between(most - spread) if spread > 0 else {})

    def now(self, at: str) -> Forecast:
        return forecast(at, self._live.values(), None)

    def _highest(self) -> tuple[int, int]:
        """(step, bytes live after it); the step before ``start`` counts as well."""
        total, place, most = 0, -1, -1
        for step, (_, change) in enumerate(self._changes()):
            total += change
            if total > most and step >= self.start - 1:
                place, most = step, total
        return place, max(most, 0)

    def _changes(self) -> Iterator[tuple[Key, int]]:
        for number, entry in self.steps:
            owner = self.steps[number][1]
            assert owner is not None
            yield (owner.owner, owner.instance, owner.category), owner.bytes if entry is not None else -owner.bytes

    def _replayed(self, place: int) -> dict[int, Entry]:
        live: dict[int, Entry] = {}
        for number, entry in self.steps[: place + 1]:
            if entry is None:
                del live[number]
            else:
                live[number] = entry
        return live

    def _between(self, least: int) -> dict[Key, tuple[int, int]]:
        """(least, most) bytes of each category over the moments that are at least so large."""
        total, found = 0, dict[Key, tuple[int, int]]()
        held: defaultdict[Key, int] = defaultdict(int)
        changed: set[Key] = set()
        for step, (key, change) in enumerate(self._changes()):
            total += change
            held[key] += change
            changed.add(key)
            if step >= self.start - 1 and total >= least:
                for each in changed:
                    low, high = found.get(each, (held[each], held[each]))
                    found[each] = min(low, held[each]), max(high, held[each])
                changed.clear()
        return found


def _with_doubt(found: Forecast, ranges: Mapping[Key, tuple[int, int]]) -> Forecast:
    lines = []
    for line in found.lines:
        size = line.private_bytes + line.file_bytes
        low, high = ranges.get((line.owner, line.instance, line.category), (size, size))
        if line.sure is Sureness.EXACT and (low, high) != (size, size):
            line = replace(line, sure=Sureness.COMPUTED, low_bytes=min(low, size), high_bytes=max(high, size))  # noqa: PLW2901
        lines.append(line)
    return replace(found, lines=tuple(lines))


def forecast(at: str, entries: Iterable[Entry], method: str | None) -> Forecast:
    groups: dict[Key, list[Entry]] = {}
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
    computed = sum(entry.bytes for entry in entries if entry.sure is Sureness.COMPUTED)
    spread = margin(computed) if computed else 0
    low = sum(entry.bytes if entry.low is None else entry.low for entry in entries)
    high = _sum(_high(entry) for entry in entries)
    return Line(
        owner=owner,
        instance=instance,
        category=category,
        private_bytes=sum(entry.private_bytes for entry in entries),
        file_bytes=sum(entry.file_bytes for entry in entries),
        low_bytes=max(0, low - spread),
        high_bytes=None if high is None else high + spread,
        sure=max((entry.sure for entry in entries), key=lambda sure: sure.rank),
    )


def margin(computed: int) -> int:
    """How far a computed figure may be off: structures differ in size between releases, and small ones are left out."""
    return computed // 10 + 1024


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
