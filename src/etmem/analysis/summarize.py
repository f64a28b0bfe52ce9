"""From a trace to its summary. Pure: the same values give the same summary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING

from etmem.analysis import (
    arenas,
    balance,
    counters,
    delegates,
    device_memory,
    instructions,
    issues,
    labels,
    named_scopes,
    peak_parts,
    peaks,
    phases,
    planned_tensors,
)
from etmem.analysis.accounting import account
from etmem.analysis.context import Account, Context, Finder
from etmem.analysis.descriptions import Descriptions
from etmem.analysis.findings import findings
from etmem.analysis.options import SummaryOptions
from etmem.analysis.programs import programs as program_rows
from etmem.model.summary import Moment, Peak, Peaks, Phase, Summary
from etmem.trace.tables import Trace

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
