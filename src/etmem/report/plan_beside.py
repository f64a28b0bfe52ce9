"""The estimate beside what was counted: the line that ends a profile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from etmem.report.units import choose_scale

if TYPE_CHECKING:
    from etmem.model.summary import Summary
    from etmem.planning.model import ProgramPlan


def beside_line(summary: Summary, plan: ProgramPlan) -> str:
    """``estimate 128.1 MiB at load (+0.0 %), 64.1 at inference (exact)``; empty where it is for another target."""
    if summary.target.isa != plan.target.isa or summary.peaks.load is None:
        return ""
    scale = choose_scale(summary.peaks.load.moment.private_bytes + summary.peaks.load.moment.file_bytes)
    parts: list[str] = []
    for at, peak in (("load", summary.peaks.load), ("inference", summary.peaks.inference)):
        forecast = plan.forecast(at)
        if peak is None or forecast is None:
            continue
        if forecast.high_bytes is None:
            return ""
        counted = peak.moment.private_bytes + peak.moment.file_bytes
        estimate = forecast.private_bytes + forecast.file_bytes
        unit = f" {scale.unit}" if not parts else ""
        off = f"{100 * (estimate - counted) / counted:+.1f} %" if estimate != counted else "exact"
        parts.append(f"{scale.plain(estimate)}{unit} at {at} ({off})")
    return f"estimate {', '.join(parts)}   etmem plan" if parts else ""
