"""From a trace to its summary. Pure: the same values give the same summary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from etmem.analysis import (
    arenas,
    balance,
    by_stack,
    counters,
    delegates,
    device_memory,
    heaps,
    instructions,
    issues,
    labels,
    modules,
    named_scopes,
    owners,
    peak_parts,
    peaks,
    phases,
    planned_tensors,
    reported,
    scopes,
    static_scopes,
)
from etmem.analysis import segments as segments_
from etmem.analysis import sharing as sharing_
from etmem.analysis import threads as threads_
from etmem.analysis.clock import clock, window_begin
from etmem.analysis.context import Account, Context, Finder
from etmem.analysis.descriptions import Descriptions
from etmem.analysis.events import events_at, pick
from etmem.analysis.findings import findings
from etmem.analysis.keys import Key, KeyBook
from etmem.analysis.ledger import Ledger, byte_columns
from etmem.analysis.lookup import I64
from etmem.analysis.options import SummaryOptions
from etmem.analysis.owners import I32
from etmem.analysis.programs import programs as program_rows
from etmem.analysis.symbols import Symbolizer
from etmem.analysis.threads import Threads
from etmem.analysis.timeline import Window
from etmem.model.summary import Moment, Peak, Peaks, Phase, Summary
from etmem.trace.blocks import blocks as all_blocks
from etmem.trace.tables import NEVER, U64, BlockKind, Blocks, EventKind, Events, Trace

if TYPE_CHECKING:
    from etmem.program import Program


def summarize(
    trace: Trace,
    options: SummaryOptions,
    *,
    descriptions: Descriptions | None = None,
    programs: Mapping[str, Program] | None = None,
    find: Finder = findings,
) -> Summary:
    """The summary of one process's trace.

    ``descriptions`` are by backend id, ``programs`` by path: what is missing there is missing from categories
    and findings, and said in the issues.
    """
    return summary(context(account(trace, options, descriptions or {}, programs or {})), find)


def account(
    trace: Trace, options: SummaryOptions, descriptions: Descriptions, programs: Mapping[str, Program]
) -> Account:
    """Files every block that lives in or after the first phase under its owner."""
    symbolizer = Symbolizer(modules.code_map(trace))
    if static_scopes.asked_for(trace):
        trace = static_scopes.with_scopes(trace, symbolizer, descriptions)
    table = scopes.resolve(trace.scopes)
    threads = threads_.resolve(trace, table, descriptions)
    everything = all_blocks(trace)[0]
    last_stamp = _last_stamp(trace, everything)
    since = window_begin(trace)
    spans = tuple(span for span in phases.spans(table.phases(), last_stamp) if span.scope.begin_ns >= since)
    window = Window(spans[0].begin, max(span.end for span in spans)) if spans else Window(0, last_stamp)
    # Without a phase nothing is counted, but what a program told of its memory needs its blocks.
    nothing = int(NEVER) if not (trace.heaps or trace.labels) else 0
    seen = _relevant(everything, window.since if spans else nothing)
    del everything
    events = pick(trace.events, _telling_stamps(trace, seen, threads))
    told = heaps.extents(trace, events, threads)
    extents, device = heaps.split(told, trace)
    # Heaps may go on when the process allocates nothing more.
    last_stamp = max(last_stamp, _last(told.begin), _last(told.end))
    blocks = reported.with_reported(trace, seen, extents)
    who = threads.attribute(blocks.scope, blocks.thread, blocks.begin)
    segments = segments_.resolve(trace, blocks, table)
    ownership = owners.assign(
        trace, events, blocks, who, table,
        extents=extents, segments=segments, descriptions=descriptions, symbolizer=symbolizer,
    )  # fmt: skip
    sharing = sharing_.resolve(events, blocks, who, threads, ownership, segments)
    keys, code = _without_instance(ownership.keys, ownership.code, sharing.rows)
    private, file = byte_columns(blocks)
    return Account(
        trace=trace,
        options=options,
        programs=programs,
        table=table,
        events=events,
        threads=threads,
        who=who,
        extents=extents,
        device=device,
        segments=segments,
        ownership=ownership,
        sharing=sharing,
        ledger=Ledger(blocks, keys, code, private, file, window, clock(trace)),
        fresh=_fresh(events, blocks, (private > 0) | (file > 0)),
        spans=spans,
        last_stamp=last_stamp,
        descriptions=descriptions,
        symbolizer=symbolizer,
    )


def context(account: Account) -> Context:
    found, stamps = peaks.peaks(account)
    return Context(
        **{field.name: getattr(account, field.name) for field in fields(Account)},
        phases=phases.phases(account),
        peaks=found,
        peak_stamps=stamps,
        arenas=arenas.arenas(account),
        delegates=delegates.delegates(account),
    )


def summary(context: Context, find: Finder) -> Summary:
    dry, withheld = context.options.dry, bool(issues.hooks_missed(context))
    return Summary(
        target=context.options.target,
        environment=context.options.environment,
        programs=program_rows(context),
        phases=tuple(map(_without_owners, context.phases)) if withheld else context.phases,
        peaks=_peaks_without_owners(context.peaks) if withheld else context.peaks,
        arenas=context.arenas,
        delegates=() if withheld else context.delegates,
        largest_blocks=() if withheld else peaks.largest_blocks(context, context.peak_stamps),
        balances=() if dry else balance.balances(context),
        high_waters=() if dry else peaks.high_waters(context, context.phases, context.peaks),
        findings=() if withheld else find(context),
        issues=issues.issues(context),
        instructions=() if withheld else instructions.instructions(context),
        planned_tensors=planned_tensors.planned_tensors(context),
        peak_parts=() if withheld else peak_parts.peak_parts(context),
        delegate_operators=() if withheld else peak_parts.delegate_operators(context),
        named_scopes=named_scopes.named_scopes(context),
        device_memory=device_memory.device_memory(context),
        counters=counters.counters(context),
        labels=() if withheld else labels.labels(context),
    )


def _last_stamp(trace: Trace, blocks: Blocks) -> int:
    """No stamp that matters is larger."""
    last = [scope.end_stamp or scope.begin_stamp for scope in trace.scopes.values()]
    last += [_last(blocks.begin), _last(blocks.end)]
    last += [
        row.stamp
        for rows in (trace.claims, trace.segments, trace.rss, trace.snapshots, trace.labels, trace.counters)
        for row in rows
    ]
    return max(last, default=0)


def _last(stamps: U64) -> int:
    return int(stamps[stamps != NEVER].max(initial=0))


def _telling_stamps(trace: Trace, blocks: Blocks, threads: Threads) -> U64:
    """The events that tell more of a block than the block does: how a mapping came to be, which function
    allocated inside a delegate, and who freed that."""
    scope = threads.attribute(blocks.scope, blocks.thread, blocks.begin).scope
    inside = threads.table.delegate[scope] != 0
    if by_stack.asked_for(trace):
        inside |= blocks.stack != 0
    mapped = blocks.kind != BlockKind.HEAP
    return np.concatenate([blocks.begin[inside | mapped], blocks.end[inside & (blocks.end != NEVER)]])


def _fresh(events: Events, blocks: Blocks, counts: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    fresh = counts.copy()
    mapped = np.flatnonzero(counts & (blocks.kind != BlockKind.HEAP))
    made_by = events_at(events, blocks.begin[mapped])
    start = blocks.address[mapped]
    # What is left of a cut mapping never holds the address that the cut began at.
    holds = (start <= made_by.address) & (made_by.address < start + blocks.bytes[mapped])
    is_break = made_by.kind == EventKind.BREAK
    fresh[mapped] = np.where(is_break, made_by.size < 1 << 47, holds)
    return fresh


def _relevant(blocks: Blocks, since: int) -> Blocks:
    """What ended before the first phase is nobody's concern: in Python most of all blocks."""
    rows = blocks.end > np.uint64(since)
    if rows.all():
        return blocks
    return Blocks(**{field.name: getattr(blocks, field.name)[rows] for field in fields(Blocks)})


def _without_instance(keys: tuple[Key, ...], code: I32, shared: I64) -> tuple[tuple[Key, ...], I32]:
    """What several instances share belongs to none of them."""
    book = KeyBook()
    for key in keys:
        book.code(key)
    alone = np.array([book.code(replace(key, instance=None)) for key in keys], np.int32)
    code = code.copy()
    code[shared] = alone[code[shared]]
    return book.keys, code


def _without_owners(phase: Phase) -> Phase:
    return replace(
        phase,
        peak=_moment_without_owners(phase.peak),
        peak_private=_moment_without_owners(phase.peak_private),
        live_start=_moment_without_owners(phase.live_start),
        live_end=_moment_without_owners(phase.live_end),
    )


def _moment_without_owners(moment: Moment) -> Moment:
    return replace(moment, owners=())


def _peaks_without_owners(found: Peaks) -> Peaks:
    def strip(peak: Peak | None) -> Peak | None:
        return peak and replace(peak, moment=_moment_without_owners(peak.moment), owner_peaks=())

    return Peaks(strip(found.load), strip(found.inference), strip(found.steady))
