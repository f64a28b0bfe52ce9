"""From a test's markers to its verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from etmem.analysis.budget import check
from etmem.analysis.budget_model import Budget, Limit, Status, Verdict
from etmem.analysis.budget_parse import parse_limit
from etmem.api import Profile
from etmem.model.errors import EtmemError
from etmem.pytest_plugin.meter import Meter
from etmem.report.verdict import render, title

_SIZES = {
    "peak": "overall",
    "load": "load",
    "inference": "inference",
    "first_inference": "first_inference",
    "later_inference": "later_inference",
    "steady": "steady",
}
"""Keywords that are limits by themselves, and what they are on."""
_SHARED = ("measure", "owner", "category", "method", "tolerance", "name")


def judge(markers: Sequence[pytest.Mark], meter: Meter, folder: Path) -> list[str]:
    """One line per limit. Fails the test where a limit is passed or cannot be told.

    ``folder`` is the one that baselines are relative to. Every profile of the test has to keep to every limit.
    """
    try:
        limits = [limit for marker in markers for limit in marker_limits(marker)]
        measured = meter.measured
        if not limits or not measured:
            what = "nothing was measured: profile a model or a block" if limits else "the etmem marker has no limit"
            pytest.fail(what, pytrace=False)
        verdicts = [_verdict(profile, tuple(limits), folder) for profile in measured]
    except EtmemError as error:
        pytest.fail(f"{error.message}\n{error.hint}", pytrace=False)
    wrong = [(v, p) for v, p in zip(verdicts, measured, strict=True) if v.status is not Status.OK]
    if wrong:
        pytest.fail("\n\n".join(f"{render(verdict)}\n{profile.text()}" for verdict, profile in wrong), pytrace=False)
    return [f"{title(outcome.limit)}: {outcome.message}" for verdict in verdicts for outcome in verdict.outcomes]


def marker_limits(marker: pytest.Mark) -> list[Limit]:
    """The limits of one marker. Raises InputError."""
    given: dict[str, Any] = dict(marker.kwargs)
    if marker.args:
        pytest.fail("the etmem marker takes keywords only, such as peak='20 MiB'", pytrace=False)
    shared = {key: given.pop(key) for key in _SHARED if key in given}
    tables = [{"what": what, "max": given.pop(key), **shared} for key, what in _SIZES.items() if key in given]
    if "allocations" in given:
        amount = given.pop("allocations")
        tables.append({**shared, "what": "later_inference", "measure": "allocations", "max": amount})
    if given or not tables:
        # The general form; a key that is not known is refused there.
        tables.append({**given, **shared})
    return [parse_limit(table, "mark.etmem") for table in tables]


def _verdict(profile: Profile, limits: tuple[Limit, ...], folder: Path) -> Verdict:
    from etmem.bundle.checking import read_baselines

    budget = Budget(limits, 1)
    return check(budget, [profile.summary], read_baselines(budget, folder), target=profile.trace_path.name)


@contextmanager
def whole_test() -> Iterator[Meter]:
    """Records the test itself, where it does not measure by itself."""
    with TemporaryDirectory(prefix="etmem-", ignore_cleanup_errors=True) as folder:
        meter = Meter(Path(folder))
        with meter.block():
            yield meter
        # Read while the trace is there.
        _ = [profile.summary for profile in meter.measured]
