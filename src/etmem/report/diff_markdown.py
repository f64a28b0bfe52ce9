"""A diff as Markdown, for the description of a pull request."""

from __future__ import annotations

from etmem.analysis.diff_model import Change, Diff, PeakChange
from etmem.report.diff import unlike
from etmem.report.markdown_table import code, table
from etmem.report.names import category_name, owner_name
from etmem.report.units import clean, file_size

_ROWS = 12


def to_markdown(diff: Diff) -> str:
    parts = [f"### {code(diff.a)} → {code(diff.b)}\n"]
    if diff.mismatches:
        parts.append(f"Not alike: {unlike(diff.mismatches)}.\n")
    parts.append(table(("", "a", "b", "change"), [_peak(peak) for peak in diff.peaks], "lrrr"))
    if diff.empty:
        parts.append("No change: every counted byte is the same.\n")
    else:
        parts += _changes(diff)
    parts += [_reason(reason.subject, reason.delta_bytes, reason.text) for reason in diff.reasons]
    return "\n".join(parts)


def _peak(peak: PeakChange) -> tuple[str, ...]:
    name = f"peak of {peak.at}" if peak.at != "steady" else "steady"
    sizes = [file_size(figures.total) if figures else "none" for figures in (peak.a, peak.b)]
    mark = "" if peak.comparable else " (not alike)"
    if peak.a is None or peak.b is None:
        return (name, *sizes, "none" + mark)
    percent = f", {100 * peak.delta_bytes / peak.a.total:+.1f} %" if peak.a.total and peak.delta_bytes else ""
    return (name, *sizes, f"{peak.delta_bytes:+,} B{percent}{mark}" if peak.delta_bytes else "0" + mark)


def _changes(diff: Diff) -> list[str]:
    """The rows of the instant that changed most; the others follow from it, or are in the JSON."""
    at = max(diff.peaks, key=lambda peak: abs(peak.delta_bytes)).at if diff.peaks else ""
    rows = diff.changes_at(at) or diff.changes
    if not rows:
        return []
    shown = rows[:_ROWS]
    lines = [table((f"at {rows[0].at}, bytes", "a", "b", "change", "share"), [_row(row) for row in shown], "lrrrr")]
    if len(shown) < len(rows):
        lines.append(f"and {len(rows) - len(shown)} smaller ones\n")
    return lines


def _row(row: Change) -> tuple[str, ...]:
    what = f"{owner_name(row.owner)} {category_name(row.category)}"
    return (what, f"{row.a.total:,}", f"{row.b.total:,}", f"{row.delta_bytes:+,}", f"{100 * row.share:.0f} %")


def _reason(subject: str, delta: int | None, text: str) -> str:
    figure = f" ({delta:+,} B)" if delta is not None else ""
    return f"- **{clean(subject)}**{figure}: {clean(text, 400)}"
