"""Whether runs keep to a budget. Pure: the same summaries give the same verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from etmem.analysis.budget_figure import Figure, LackingError, figure
from etmem.analysis.budget_model import Budget, Limit, Measure, Outcome, Status, Verdict, What
from etmem.analysis.budget_parse import check_rss_tolerance
from etmem.analysis.diff_comparable import mismatches
from etmem.analysis.diff_model import MismatchCode
from etmem.model.summary import Summary

_HARMLESS = {
    MismatchCode.EXECUTORCH,  # what a baseline is for
    MismatchCode.ITERATIONS,
    MismatchCode.ALLOCATOR,
    MismatchCode.METHODS,
}
"""Differences from the baseline's run that leave a limit on counted bytes as it is."""


def check(
    budget: Budget, runs: Sequence[Summary], baselines: Mapping[str, Summary], *, target: str = "target"
) -> Verdict:
    """The verdict on the repeats of one run; ``baselines`` are by the limits' own spelling.

    A baseline that is not there makes its limits errors. Raises InputError for a limit on RSS whose tolerance
    turns out too small.
    """
    outcomes = [
        _outcome(limit, runs, baselines.get(limit.baseline or ""), f"limit[{at}]")
        for at, limit in enumerate(budget.limits)
    ]
    return Verdict(target, tuple(outcomes))


def _outcome(limit: Limit, runs: Sequence[Summary], baseline: Summary | None, where: str) -> Outcome:
    if not runs:
        return _error(limit, "nothing was measured", 0)
    try:
        found = max((figure(run, limit) for run in runs), key=lambda one: one.value)
        base = _base(limit, runs, baseline)
    except LackingError as lacking:
        return _error(limit, str(lacking), len(runs))
    if limit.measure is Measure.RSS and limit.max is None:
        check_rss_tolerance(limit, base, where)
    reference = limit.max if limit.max is not None else base
    if reference is None:
        raise AssertionError("a limit has max or a baseline")
    allowed = reference + limit.tolerance.of(reference)
    return _compared(limit, found, allowed, base, len(runs))


def _compared(limit: Limit, found: Figure, allowed: int, base: int | None, repeats: int) -> Outcome:
    over = found.value > allowed
    unit = f" {limit.measure.unit}".rstrip()
    message = f"{found.value:,} of {allowed:,}{unit}"
    message += f", {found.value - allowed:,}{unit} over" if over else f", {allowed - found.value:,}{unit} left"
    if base is not None:
        message += f"; baseline {base:,}, {found.value - base:+,}"
    status = Status.OVER if over else Status.OK
    return Outcome(limit, status, found.value, allowed, base, message, repeats, found.breakdown)


def _base(limit: Limit, runs: Sequence[Summary], baseline: Summary | None) -> int | None:
    if limit.baseline is None:
        return None
    if baseline is None:
        raise LackingError(f"there is no baseline {limit.baseline}: write it with etmem check --update")
    unlike = [
        f"{one.code.value} ({one.a} -> {one.b})"
        for run in runs
        for one in mismatches(baseline, run)
        if _spoils(one.code, limit)
    ]
    if unlike:
        raise LackingError(f"the baseline was run otherwise: {', '.join(dict.fromkeys(unlike))}")
    try:
        return figure(baseline, limit).value
    except LackingError as lacking:
        raise LackingError(f"the baseline lacks it: {lacking}") from lacking


def _spoils(code: MismatchCode, limit: Limit) -> bool:
    if code is MismatchCode.METHODS:
        return limit.method is None
    if code is MismatchCode.ITERATIONS:
        return limit.measure in (Measure.ALLOCATED, Measure.ALLOCATIONS) and limit.what is What.OVERALL
    if code is MismatchCode.ALLOCATOR:
        return limit.measure is Measure.RSS
    if code is MismatchCode.DRY:
        return limit.measure is Measure.RSS
    return code not in _HARMLESS


def _error(limit: Limit, message: str, repeats: int) -> Outcome:
    return Outcome(limit, Status.ERROR, None, None, None, message, repeats)
