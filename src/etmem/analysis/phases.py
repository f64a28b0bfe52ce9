"""The rows of ``Summary.phases``."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import numpy as np
import numpy.typing as npt

from etmem.analysis.context import Account, Span
from etmem.analysis.lookup import I64
from etmem.analysis.scopes import PHASE_KINDS
from etmem.model.summary import Phase, Rss
from etmem.model.words import HOST, PhaseKind
from etmem.trace.tables import RssLabel, RssSample, Scope, Trace


def spans(phases: tuple[Scope, ...], last_stamp: int) -> tuple[Span, ...]:
    return tuple(
        Span(scope, PHASE_KINDS[scope.kind], scope.begin_stamp, scope.end_stamp or last_stamp) for scope in phases
    )


def phases(account: Account) -> tuple[Phase, ...]:
    ledger = account.ledger
    peaks, private_peaks = peak_stamps(account)
    edges = [stamp for span in account.spans for stamp in (span.begin, span.end)]
    moments = ledger.moments([*peaks, *private_peaks, *edges])
    allocated, allocations = _allocated(account)
    unowned = _unowned(account)
    rss = _RssSamples(account.trace)
    return tuple(
        Phase(
            kind=span.kind,
            program=span.scope.a,
            method=None if span.kind is PhaseKind.PROGRAM_LOAD else span.scope.name,
            iteration=span.scope.b if span.kind is PhaseKind.INFERENCE else None,
            start_ns=_time(account, span.scope.begin_ns, span.begin),
            end_ns=_time(account, span.scope.end_ns, span.end),
            failed=span.scope.failed,
            peak=moments[peak],
            peak_private=moments[private_peak],
            live_start=moments[span.begin],
            live_end=moments[span.end],
            allocated_bytes=int(allocated[span.scope.id]),
            allocations=int(allocations[span.scope.id]),
            unowned_bytes=int(unowned[span.scope.id]),
            process_private_bytes=ledger.process_private.peak(span.begin, span.end)[1],
            rss=None if account.options.dry else rss.of(span),
        )
        for span, peak, private_peak in zip(account.spans, peaks, private_peaks, strict=True)
    )


def peak_stamps(account: Account) -> tuple[list[int], list[int]]:
    """Of each phase, the stamps of its two peaks."""
    lines = (account.ledger.total, account.ledger.total_private)
    both = [[line.peak(span.begin, span.end)[0] for span in account.spans] for line in lines]
    return both[0], both[1]


def _time(account: Account, time_ns: int | None, stamp: int) -> int:
    if time_ns is None:
        return account.ledger.clock.ns(stamp)
    return time_ns - account.trace.header.start_monotonic_ns


def _allocated(account: Account) -> tuple[I64, I64]:
    """By phase id, bytes and number of the counted blocks allocated in it, by its own threads and its helpers."""
    rows = account.ledger.counted & account.fresh
    return _per_phase(account, rows, account.ledger.both), _per_phase(account, rows, account.blocks.count)


def _unowned(account: Account) -> I64:
    host = np.array([key.owner == HOST for key in account.keys], np.bool_)
    rows = host[account.ledger.code] & account.fresh & ~account.ownership.claimed
    return _per_phase(account, rows, account.ledger.both)


def _per_phase(account: Account, rows: npt.NDArray[np.bool_], column: npt.NDArray[Any]) -> I64:
    sums = np.bincount(account.who.phase[rows], column[rows], len(account.table.phase))
    return np.rint(sums).astype(np.int64)


class _RssSamples:
    """The samples of a trace, found by phase and by stamp: of a long run there are two for each inference."""

    def __init__(self, trace: Trace) -> None:
        self._samples = trace.rss
        self._stamps = [sample.stamp for sample in trace.rss]
        self._edges: dict[tuple[int, RssLabel], RssSample] = {}
        for sample in trace.rss:
            self._edges.setdefault((sample.scope, sample.label), sample)
        self._known = trace.note("issue.high_water_unavailable") is None

    def of(self, span: Span) -> Rss | None:
        """Null where the edges were not sampled. A sample's high water is that since the sample before it."""
        edges = (self._edges.get((span.scope.id, label)) for label in (RssLabel.PHASE_BEGIN, RssLabel.PHASE_END))
        begin, end = edges
        if begin is None or end is None:
            return None
        within = self._samples[bisect_right(self._stamps, begin.stamp) : bisect_right(self._stamps, end.stamp)]
        high = max((sample.high_water_bytes for sample in within), default=0)
        peak = max(high, begin.rss_bytes, end.rss_bytes) if self._known and high > 0 else None
        return Rss(begin.rss_bytes, end.rss_bytes, peak)
