"""Everything that the HTML page shows, as one value. ``web/src/data.ts`` names the same fields."""

from __future__ import annotations

from dataclasses import dataclass, replace

from etmem.model.summary import Moment, Phase, Summary
from etmem.report.explain import Entry, entries
from etmem.report.live_blocks import LiveBlocks, live_blocks
from etmem.report.plans import PlanMap
from etmem.report.samples import Samples
from etmem.report.stacks import Stacks
from etmem.report.told_series import ToldSeries, told_series
from etmem.report.view import View
from etmem.trace.tables import RssSample

VERSION = 1
NO_BLOCKS = LiveBlocks((), (), (), (), (), (), ())
NO_STACKS = Stacks((), ())


@dataclass(frozen=True)
class KeyRow:
    owner: str
    instance: str | None
    category: str
    counted: bool


@dataclass(frozen=True)
class SpanRow:
    """A phase on the time axis; ``phase`` is the index in ``Summary.phases``."""

    phase: int
    begin: int
    end: int


@dataclass(frozen=True)
class RssRow:
    stamp: int
    time_ns: int
    rss_bytes: int
    high_water_bytes: int
    """Highest since the sample before; 0 where the kernel cannot say."""


@dataclass(frozen=True)
class Mark:
    """A moment with a name: ``load``, ``inference`` or ``steady``."""

    name: str
    stamp: int


@dataclass(frozen=True)
class ReportData:
    version: int
    title: str
    trace: str
    summary: Summary
    """Phases without the owners of their moments: the samples hold those. Planned tensors are in ``plans``."""
    keys: tuple[KeyRow, ...]
    samples: Samples
    spans: tuple[SpanRow, ...]
    marks: tuple[Mark, ...]
    rss: tuple[RssRow, ...]
    blocks: LiveBlocks = NO_BLOCKS
    stacks: Stacks = NO_STACKS
    plans: tuple[PlanMap, ...] = ()
    told: tuple[ToldSeries, ...] = ()
    words: tuple[Entry, ...] = ()
    """What ``etmem explain`` says."""


def report_data(view: View) -> ReportData:
    return replace(
        timeline_data(view),
        blocks=live_blocks(view.context, view.samples.stamps) if not view.withheld else NO_BLOCKS,
        stacks=view.stacks,
        plans=view.plans,
        told=told_series(view.context),
        words=tuple(entries().values()),
    )


def timeline_data(view: View) -> ReportData:
    """Without blocks, stacks, plans and words: what a timeline is drawn from."""
    context = view.context
    return ReportData(
        version=VERSION,
        title=view.title,
        trace=view.trace_path.name,
        summary=lean(view.summary),
        keys=tuple(
            KeyRow(key.owner, key.instance.label if key.instance else None, key.category.value, key.counted)
            for key in context.keys
        ),
        samples=view.samples,
        spans=tuple(SpanRow(index, span.begin, span.end) for index, span in enumerate(context.spans)),
        marks=tuple(Mark(name, stamp) for name, stamp in context.peak_stamps.items()),
        rss=() if context.options.dry else tuple(_rss(view, sample) for sample in context.trace.rss),
    )


def _rss(view: View, sample: RssSample) -> RssRow:
    start = view.context.trace.header.start_monotonic_ns
    known = view.context.trace.note("issue.high_water_unavailable") is None
    return RssRow(sample.stamp, sample.time_ns - start, sample.rss_bytes, sample.high_water_bytes if known else 0)


def lean(summary: Summary) -> Summary:
    """What a page shows of a summary: moments without their owners, which the samples hold."""
    return replace(summary, phases=tuple(map(_lean_phase, summary.phases)), planned_tensors=(), largest_blocks=())


def _lean_phase(phase: Phase) -> Phase:
    return replace(
        phase,
        peak=_totals(phase.peak),
        peak_private=_totals(phase.peak_private),
        live_start=_totals(phase.live_start),
        live_end=_totals(phase.live_end),
    )


def _totals(moment: Moment) -> Moment:
    return replace(moment, owners=())
