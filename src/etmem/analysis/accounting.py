"""From a trace to its account: every block that lives in or after the first phase, filed under its owner."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from etmem.analysis import heaps, modules, owners, peaks, phases, reported, scopes, static_scopes
from etmem.analysis import segments as segments_
from etmem.analysis import sharing as sharing_
from etmem.analysis import threads as threads_
from etmem.analysis.clock import clock, window_begin
from etmem.analysis.context import Account
from etmem.analysis.descriptions import Descriptions
from etmem.analysis.edges import edges
from etmem.analysis.keys import Key, KeyBook
from etmem.analysis.ledger import Ledger, byte_columns
from etmem.analysis.lookup import I64
from etmem.analysis.options import SummaryOptions
from etmem.analysis.owners import I32
from etmem.analysis.scopes import ScopeTable
from etmem.analysis.symbols import Symbolizer
from etmem.analysis.threads import Threads
from etmem.analysis.timeline import Window
from etmem.trace.blocks import Matched, match
from etmem.trace.folding import saved, select, unfold, unfold_all
from etmem.trace.passes import Folding
from etmem.trace.tables import NEVER, NOT_FOLDED, U64, BlockKind, Blocks, EventKind, Events, Scope, Trace, last_of

if TYPE_CHECKING:
    from etmem.program import Program


def account(
    trace: Trace, options: SummaryOptions, descriptions: Descriptions, programs: Mapping[str, Program]
) -> Account:
    """Files every block under its owner.

    Of a long trace the short-lived blocks are folded. Those that live at a peak get rows of their own; when that is,
    the folded account knows already.
    """
    book = _book(trace, options, descriptions, programs)
    if options.fold_from is None or len(trace.events) < options.fold_from:
        return book.account(book.match(None), _NONE)
    folding = Folding(edges(book.trace, book.since), book.since)
    matched = book.match(folding)
    if options.fold_from and saved(matched.blocks, matched.brief) < len(matched.blocks) * _LEAST_SAVED:
        blocks = unfold_all(matched.blocks, matched.brief)
        return book.account(replace(matched, blocks=blocks, brief=NOT_FOLDED), folding.edges)
    found = book.account(matched, folding.edges)
    looked_at = _stamps_of_peaks(found)
    ready = np.union1d(folding.edges, np.append(looked_at, np.uint64(found.last_stamp)))
    keys, lines = found.keys, found.ledger.lines
    del found
    blocks, brief = unfold(matched.blocks, matched.brief, looked_at)
    again = book.account(replace(matched, blocks=blocks, brief=brief), ready)
    # With the same keys the timelines are the same: who has a row of its own changes none.
    return replace(again, ledger=replace(again.ledger, lines=lines)) if again.keys == keys else again


def every_block(found: Account) -> Account:
    """The account with a row for every block, and its address: for those who list them all."""
    if not len(found.ledger.edges):
        return found
    options = replace(found.options, fold_from=None)
    return account(found.trace, options, found.descriptions, found.programs)


_NONE: U64 = np.empty(0, np.uint64)

_LEAST_SAVED = 0.5
"""Rows saved for each that is left, below which they are worth less than a second account takes."""


def _stamps_of_peaks(account: Account) -> U64:
    both = phases.peak_stamps(account)
    return np.array(sorted({*both[0], *both[1], *peaks.stamps_of_owners(account)}), np.uint64)


@dataclass(frozen=True)
class _Book:
    """What an account is made with, whichever blocks have rows."""

    trace: Trace
    options: SummaryOptions
    descriptions: Descriptions
    programs: Mapping[str, Program]
    symbolizer: Symbolizer
    table: ScopeTable
    threads: Threads
    phases: tuple[Scope, ...]
    since: int
    """What ended by this stamp is nobody's concern: in Python most of all blocks."""

    def match(self, folding: Folding | None) -> Matched:
        """The blocks that are somebody's concern."""
        matched = match(self.trace, folding)
        rows = matched.blocks.end > np.uint64(self.since)
        if rows.all():
            return matched
        blocks, brief = select(matched.blocks, matched.brief, np.flatnonzero(rows))
        return replace(matched, blocks=blocks, brief=brief)

    def account(self, matched: Matched, edges: U64) -> Account:
        trace, events = self.trace, matched.events
        last_stamp = max(matched.last_stamp, _last_told(trace))
        spans = phases.spans(self.phases, last_stamp)
        window = Window(spans[0].begin, max(span.end for span in spans)) if spans else Window(0, last_stamp)
        extents, device = heaps.split(heaps.extents(trace, events, self.threads), trace)
        # Heaps may go on when the process allocates nothing more.
        last_stamp = max([last_stamp, *(last_of(column) for e in (extents, device) for column in (e.begin, e.end))])
        blocks, brief = reported.with_reported(trace, matched.blocks, matched.brief, extents)
        who = self.threads.attribute(blocks.scope, blocks.thread, blocks.begin)
        segments = segments_.resolve(trace, blocks, self.table)
        ownership = owners.assign(
            trace, blocks, who, self.table, extents=extents, segments=segments,
            descriptions=self.descriptions, symbolizer=self.symbolizer,
        )  # fmt: skip
        sharing = sharing_.resolve(blocks, who, self.threads, ownership, segments)
        keys, code = _without_instance(ownership.keys, ownership.code, sharing.rows)
        private, file = byte_columns(blocks)
        return Account(
            trace=trace,
            options=self.options,
            programs=self.programs,
            table=self.table,
            events=events,
            threads=self.threads,
            who=who,
            extents=extents,
            device=device,
            segments=segments,
            ownership=ownership,
            sharing=sharing,
            ledger=Ledger(blocks, brief, keys, code, private, file, window, clock(trace), edges),
            fresh=_fresh(events, blocks, (private > 0) | (file > 0)),
            spans=spans,
            last_stamp=last_stamp,
            descriptions=self.descriptions,
            symbolizer=self.symbolizer,
        )


def _book(trace: Trace, options: SummaryOptions, descriptions: Descriptions, programs: Mapping[str, Program]) -> _Book:
    symbolizer = Symbolizer(modules.code_map(trace))
    if static_scopes.asked_for(trace):
        trace = static_scopes.with_scopes(trace, symbolizer, descriptions)
    table = scopes.resolve(trace.scopes)
    threads = threads_.resolve(trace, table, descriptions)
    begun = tuple(scope for scope in table.phases() if scope.begin_ns >= window_begin(trace))
    # Without a phase nothing is counted, but what a program told of its memory needs its blocks.
    nothing = int(NEVER) if not (trace.heaps or trace.labels) else 0
    since = begun[0].begin_stamp if begun else nothing
    return _Book(trace, options, descriptions, programs, symbolizer, table, threads, begun, since)


def _last_told(trace: Trace) -> int:
    """The last stamp of what is no event."""
    last = [scope.end_stamp or scope.begin_stamp for scope in trace.scopes.values()]
    last += [
        row.stamp
        for rows in (trace.claims, trace.segments, trace.rss, trace.snapshots, trace.labels, trace.counters)
        for row in rows
    ]
    return max(last, default=0)


def _fresh(events: Events, blocks: Blocks, counts: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    fresh = counts.copy()
    mapped = np.flatnonzero(counts & (blocks.kind != BlockKind.HEAP))
    made_by = np.searchsorted(events.stamp, blocks.begin[mapped])
    start, address = blocks.address[mapped], events.address[made_by]
    # What is left of a cut mapping never holds the address that the cut began at.
    holds = (start <= address) & (address < start + blocks.bytes[mapped])
    is_break = events.kind[made_by] == EventKind.BREAK
    fresh[mapped] = np.where(is_break, events.size[made_by] < 1 << 47, holds)
    return fresh


def _without_instance(keys: tuple[Key, ...], code: I32, shared: I64) -> tuple[tuple[Key, ...], I32]:
    """What several instances share belongs to none of them."""
    book = KeyBook()
    for key in keys:
        book.code(key)
    alone = np.array([book.code(replace(key, instance=None)) for key in keys], np.int32)
    code = code.copy()
    code[shared] = alone[code[shared]]
    return book.keys, code
