"""RSS at rest, line by line: ``rss == sum(lines) + unaccounted``."""

from __future__ import annotations

from etmem.analysis.clock import window_begin
from etmem.analysis.context import Account
from etmem.analysis.residency import lines
from etmem.model.summary import Balance, BalanceLine
from etmem.model.words import EXECUTORCH, HOST, PhaseKind
from etmem.trace.tables import Snapshot

_AFTER_INFERENCE = ("unload", "exit")


def balances(account: Account) -> tuple[Balance, ...]:
    """At the end of the last method load, of the first and of the last inference, as far as there are
    snapshots with pages."""
    chosen = (
        ("load", _load(account)),
        ("first_inference", _first_inference(account)),
        ("last_inference", _last_inference(account)),
    )
    return tuple(_balance(account, at, snapshot) for at, snapshot in chosen if snapshot is not None)


def _balance(account: Account, at: str, snapshot: Snapshot) -> Balance:
    found = lines(account, snapshot)
    rows = tuple(BalanceLine(name, found.bytes[name], found.sources[name]) for name in sorted(found.bytes, key=_order))
    return Balance(at, snapshot.rss_bytes, rows, snapshot.rss_bytes - sum(row.bytes for row in rows))


def _order(name: str) -> tuple[int, str]:
    first = {EXECUTORCH: 0, HOST: 2}
    return first.get(name, 1 if name.startswith("delegate:") else 3), name


def _scanned(account: Account, *names: str) -> list[Snapshot]:
    since = window_begin(account.trace)
    found = (snapshot for snapshot in account.trace.snapshots if snapshot.time_ns >= since)
    return [snapshot for snapshot in found if snapshot.scanned and snapshot.name in names]


def _load(account: Account) -> Snapshot | None:
    return next(reversed(_scanned(account, "method_load")), None)


def _first_inference(account: Account) -> Snapshot | None:
    return next(iter(_scanned(account, "inference")), None)


def _last_inference(account: Account) -> Snapshot | None:
    """That of the last inference itself; where it has none, the next one after it: nothing of the program has
    gone when its unload begins."""
    inferences = account.spans_of(PhaseKind.INFERENCE)
    if not inferences:
        return None
    last = max(inferences, key=lambda span: span.end)
    taken = [s for s in _scanned(account, "inference", *_AFTER_INFERENCE) if s.stamp >= last.begin]
    return next(iter(taken), next(reversed(_scanned(account, "inference")), None))
