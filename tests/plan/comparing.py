"""A plan's moments against those that a run counts."""

from __future__ import annotations

from collections import Counter

import pytest

from etmem.delegates.estimating import Sureness
from etmem.model.summary import Moment, Summary
from etmem.model.words import is_counted
from etmem.planning.model import Forecast, ProgramPlan

MOMENTS = ("load", "inference", "steady")


def assert_close(found: ProgramPlan, summary: Summary, share: float) -> None:
    """In sum within ``share``, and within the interval but for kernels' own scratch, which no file tells; and where
    all lines of a category are exact, to the byte."""
    later = [phase.peak for phase in summary.phases if phase.kind == "inference" and phase.iteration]
    if later:
        forecast = found.forecast("later")
        assert forecast is not None
        assert_within(forecast, max(later, key=lambda peak: peak.private_bytes + peak.file_bytes), share)
    for at in MOMENTS:
        forecast, peak = found.forecast(at), getattr(summary.peaks, at)
        assert forecast is not None
        assert_within(forecast, peak.moment, share)
        exact, counted = exact_categories(forecast), categories(peak.moment)
        assert exact == {key: counted[key] for key in exact}, at
        assert exact


def assert_within(forecast: Forecast, moment: Moment, share: float) -> None:
    counted = moment.private_bytes + moment.file_bytes
    assert forecast.private_bytes + forecast.file_bytes == pytest.approx(counted, rel=share), forecast.at
    assert forecast.private_bytes == pytest.approx(moment.private_bytes, rel=share, abs=4096), forecast.at
    assert forecast.high_bytes is not None
    told = counted - categories(moment)["executorch", "kernel_scratch"]
    assert forecast.low_bytes <= told <= forecast.high_bytes, forecast.at


def categories(moment: Moment) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for owner in moment.owners:
        if is_counted(owner.owner):
            for part in owner.categories:
                found[owner.owner, part.category] += part.private_bytes + part.file_bytes
    return found


def exact_categories(forecast: Forecast) -> dict[tuple[str, str], int]:
    sums: Counter[tuple[str, str]] = Counter()
    for line in forecast.lines:
        sums[line.owner, line.category] += line.private_bytes + line.file_bytes
    unsure = {(line.owner, line.category) for line in forecast.lines if line.sure is not Sureness.EXACT}
    return {key: size for key, size in sums.items() if key not in unsure}
