"""A diff as text: the peaks, what moved by its size, why, and with ``full`` every level."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from etmem.analysis.diff_model import Change, Diff, Figures, Mismatch, PeakChange, Reason, ReasonCode
from etmem.model.codec import to_data
from etmem.model.words import Category
from etmem.report.names import category_name, owner_name
from etmem.report.table import MIN_WIDTH, grid, join_parts, wrap
from etmem.report.units import Scale, choose_scale, clean, shorten

_ROWS = 10
_BLOCKS = 3
_REASONS = 3


def render(diff: Diff, *, width: int = MIN_WIDTH, full: bool = False) -> str:
    """ASCII lines of at most ``width`` (80 at least)."""
    width = max(width, MIN_WIDTH)
    lines = [*_head(diff, width), *_peaks(diff, width)]
    if diff.empty:
        lines.append("no change: every counted byte is the same")
    lines += _changes(diff, width, full=full)
    lines += _reasons(diff, width, full=full)
    if full:
        lines += _details(diff, width)
        lines += _beside(diff, width)
    return "\n".join(lines) + "\n"


def to_json(diff: Diff) -> str:
    """``etmem.diff/1``; ``schema`` is the first field."""
    data = to_data(diff)
    return json.dumps({"schema": data.pop("schema"), **data}, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def _head(diff: Diff, width: int) -> list[str]:
    names = f"{clean(diff.a, 60)} -> {clean(diff.b, 60)}"
    alike = "same target, runtime and options" if not diff.mismatches else f"not alike: {unlike(diff.mismatches)}"
    return join_parts([names, alike], width, gap="     ")


def unlike(mismatches: Iterable[Mismatch]) -> str:
    return ", ".join(mismatch.code.short for mismatch in mismatches)


def _peaks(diff: Diff, width: int) -> list[str]:
    known = [figures.total for peak in diff.peaks for figures in (peak.a, peak.b) if figures is not None]
    scale = choose_scale(max(known, default=0))
    lines: list[str] = []
    for peak in diff.peaks:
        label = f"PEAK of {peak.at}" if peak.at != "steady" else "steady"
        parts = [f"{label:<17} {_from_to(peak, scale)}"]
        if not peak.comparable:
            parts.append("(not alike)")
        lines += join_parts(parts, width)
    return lines


def _from_to(peak: PeakChange, scale: Scale) -> str:
    a, b = (scale.number(figures.total) if figures else "none" for figures in (peak.a, peak.b))
    if peak.a is None or peak.b is None:
        return f"{a:>6} -> {b:>6} {scale.unit}"
    if peak.delta_bytes == 0:
        return f"{a:>6} -> {b:>6} {scale.unit}  (no change)"
    percent = f", {100 * peak.delta_bytes / peak.a.total:+.0f} %" if peak.a.total else ""
    return f"{a:>6} -> {b:>6} {scale.unit}  ({peak.delta_bytes:+,} B{percent})"


def _changes(diff: Diff, width: int, *, full: bool) -> list[str]:
    lines: list[str] = []
    seen: set[tuple[str, Category, int]] = set()
    for peak in diff.peaks:
        rows = [row for row in diff.changes_at(peak.at) if (row.owner, row.category, row.delta_bytes) not in seen]
        seen |= {(row.owner, row.category, row.delta_bytes) for row in rows}
        if not rows:
            continue
        shown = rows if full else rows[:_ROWS]
        lines += ["", f"at {peak.at}{' besides' if lines else ''}, bytes"]
        lines += grid(("change", "what", "a", "", "b"), [_change(row) for row in shown], 0, width)[1:]
        if len(shown) < len(rows):
            lines.append(f"  and {len(rows) - len(shown)} smaller ones: --full")
    if not full:
        lines += _first_blocks(diff, width)
    return lines


def _change(row: Change) -> tuple[str, ...]:
    label = f"{owner_name(row.owner)} {category_name(row.category)}"
    mark = " f" if row.a.private_bytes == row.b.private_bytes and row.a.file_bytes != row.b.file_bytes else ""
    return (
        f"{row.delta_bytes:+,}",
        (shorten(label, 34) + mark).ljust(34),
        f"{row.a.total:,}",
        "->",
        f"{row.b.total:,}",
    )


def _first_blocks(diff: Diff, width: int) -> list[str]:
    rows = sorted(diff.blocks, key=lambda row: -abs(row.delta_bytes))
    if not rows:
        return []
    first = [row for row in rows if row.at == rows[0].at][:_BLOCKS]
    texts = [
        f"{row.b_count - row.a_count:+} x {row.requested_bytes:,} B "
        f"{row.operator or owner_name(row.owner) + ' ' + category_name(row.category)}"
        for row in first
    ]
    return wrap(f"blocks at {rows[0].at}: {'; '.join(texts)}", width, rest="  ")


def _reasons(diff: Diff, width: int, *, full: bool) -> list[str]:
    shown = diff.reasons if full else diff.reasons[: _REASONS + sum(map(_configured, diff.reasons))]
    lines = [""] if shown else []
    for reason in shown:
        figure = f" {reason.delta_bytes:+,} B" if reason.delta_bytes is not None else ""
        lines += wrap(f"reason: {clean(reason.subject)}{figure}: {clean(reason.text, 400)}", width, rest="  ")
    if len(shown) < len(diff.reasons):
        lines.append(f"  and {len(diff.reasons) - len(shown)} more: --full")
    return lines


def _configured(reason: Reason) -> bool:
    return reason.code is ReasonCode.CONFIGURATION


def _details(diff: Diff, width: int) -> Iterator[str]:
    yield from _table(
        "MISMATCHES", ("what", "a", "b", "effect"),
        [(m.code.value, clean(m.a, 40), clean(m.b, 40), m.effect) for m in diff.mismatches], 4, width,
    )  # fmt: skip
    yield from _table(
        "PHASES, bytes", ("phase", "peak change", "a", "b", "allocations"), [
            (
                " ".join(str(part) for part in (p.kind.value, p.method, p.iteration) if part is not None),
                f"{p.delta_bytes:+,}", _maybe(p.a_peak_bytes), _maybe(p.b_peak_bytes),
                f"{_maybe(p.a_allocations)} -> {_maybe(p.b_allocations)}",
            )
            for p in diff.phases
        ], 1, width,
    )  # fmt: skip
    yield from _table(
        "ARENAS, bytes", ("arena", "method", "change", "a", "b"),
        [(a.name, clean(a.method or "-", 24), f"{a.delta_bytes:+,}", _maybe(a.a_bytes), _maybe(a.b_bytes))
         for a in diff.arenas], 2, width,
    )  # fmt: skip
    yield from _table(
        "DELEGATE INSTANCES, bytes", ("at", "instance", "change", "a", "b"),
        [(i.at, clean(i.instance, 48), f"{i.delta_bytes:+,}", _figures(i.a), _figures(i.b)) for i in diff.instances],
        2, width,
    )  # fmt: skip
    yield from _table(
        "OPERATORS, bytes", ("at", "operator", "category", "change", "a", "b"),
        [(o.at, clean(o.operator, 40), category_name(o.category), f"{o.delta_bytes:+,}", _figures(o.a), _figures(o.b))
         for o in diff.operators], 3, width,
    )  # fmt: skip
    yield from _table(
        f"BLOCKS ({diff.blocks_compared} compared)", ("at", "block of", "change", "each", "a", "b"), [
            (
                b.at, clean(b.operator or f"{owner_name(b.owner)} {category_name(b.category)}", 40),
                f"{b.delta_bytes:+,}", f"{b.requested_bytes:,}", str(b.a_count), str(b.b_count),
            )
            for b in diff.blocks
        ], 2, width,
    )  # fmt: skip


def _beside(diff: Diff, width: int) -> Iterator[str]:
    rows = [(row.what, _maybe(row.a_bytes), _maybe(row.b_bytes)) for row in diff.beside]
    yield from _table("BESIDE, measured or the host's: not part of the change", ("what", "a", "b"), rows, 1, width)


def _table(
    title: str, header: tuple[str, ...], rows: Sequence[tuple[str, ...]], left: int, width: int
) -> Iterator[str]:
    if rows:
        yield ""
        yield title
        # Methods and operators are named by the file, which may hold anything.
        yield from grid(header, [[clean(cell) for cell in row] for row in rows], left, width)


def _maybe(count: int | None) -> str:
    return "none" if count is None else f"{count:,}"


def _figures(figures: Figures) -> str:
    return f"{figures.total:,}"
