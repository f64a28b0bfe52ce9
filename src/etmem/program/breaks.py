"""Graph breaks: operators between the delegates of one backend, and the planned memory that they cost."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from etmem.program.lifetimes import Lifetimes, Storage, lifetimes, peak_bytes
from etmem.program.model import DelegateCall, KernelCall

if TYPE_CHECKING:
    from collections.abc import Iterator

    from etmem.program.model import Plan


@dataclass(frozen=True)
class GraphBreak:
    """How one backend's part of a method is cut into pieces."""

    method: str
    backend: str
    delegates: int
    operators: tuple[tuple[str, int], ...]
    """What stands between them, most frequent first: (operator, how often)."""
    crossing_bytes: int
    """The most bytes that tensors handed over a cut hold of planned memory at once."""
    peak_bytes: int
    """The most bytes of planned memory in use at once."""
    uncut_peak_bytes: int
    """The same if the backend took everything between its first and its last delegate."""

    @property
    def saving_bytes(self) -> int:
        return max(0, self.peak_bytes - self.uncut_peak_bytes)


def graph_breaks(plan: Plan) -> tuple[GraphBreak, ...]:
    """One entry for each backend that is cut into two delegates or more."""
    lives = lifetimes(plan)
    backends = dict.fromkeys(delegate.backend for delegate in plan.delegates)
    return tuple(found for backend in backends if (found := _break(plan, backend, lives)) is not None)


def uncut_peak_bytes(plan: Plan, lives: Lifetimes, mem_id: int) -> int:
    """The most bytes in use at once of one planned buffer, if no backend were cut."""
    storages = [storage for storage in lives.storages if storage.mem_id == mem_id]
    calls: dict[str, list[int]] = {}
    for time, called in _delegate_calls(lives):
        calls.setdefault(plan.delegates[called].backend, []).append(time)
    peaks = [
        peak_bytes(
            _as_one(storage, times[0], times[-1])
            for storage in storages
            if storage.first < times[0] or times[-1] < storage.last
        )
        for times in calls.values()
        if len(times) > 1
    ]
    return min((peak_bytes(storages), *peaks))


def _break(plan: Plan, backend: str, lives: Lifetimes) -> GraphBreak | None:
    calls = [time for time, called in _delegate_calls(lives) if plan.delegates[called].backend == backend]
    if len(calls) < 2:
        return None
    first, last = calls[0], calls[-1]
    between = lives.instructions[first : last + 1]
    operators = Counter(str(plan.operators[entry.operator]) for entry in between if isinstance(entry, KernelCall))
    inner = [storage for storage in lives.storages if first <= storage.first and storage.last <= last]
    outer = (storage for storage in lives.storages if storage.first < first or last < storage.last)
    return GraphBreak(
        method=plan.name,
        backend=backend,
        delegates=len(calls),
        operators=tuple(sorted(operators.items(), key=lambda entry: (-entry[1], entry[0]))),
        crossing_bytes=peak_bytes(inner),
        peak_bytes=lives.peak_bytes,
        uncut_peak_bytes=peak_bytes(_as_one(storage, first, last) for storage in outer),
    )


def _delegate_calls(lives: Lifetimes) -> Iterator[tuple[int, int]]:
    for time, entry in enumerate(lives.instructions):
        if isinstance(entry, DelegateCall):
            yield time, entry.delegate


def _as_one(storage: Storage, first: int, last: int) -> Storage:
    """The storage in a time in which ``first`` to ``last`` are one instruction."""

    def moved(time: int) -> int:
        return time if time < first else max(first, time - (last - first))

    return replace(storage, first=moved(storage.first), last=moved(storage.last))
