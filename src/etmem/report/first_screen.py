"""The first screen: the peaks, whose they are, what they are; then findings, balance and where the files are."""

from __future__ import annotations

from etmem.model.summary import Summary
from etmem.report.balance import balance_lines
from etmem.report.header import header_lines, peak_lines
from etmem.report.operators import source_lines
from etmem.report.owners import beside_row, device_rows, owner_rows, table_columns
from etmem.report.remarks import FIRST_SCREEN_FINDINGS, explain_hint, finding_lines, issue_lines
from etmem.report.table import OwnerTable, join_parts
from etmem.report.units import Scale, choose_scale, clean

TRACE_LIMIT = 100


def first_screen(summary: Summary, width: int, *, exact: bool, full: bool, trace_path: str | None) -> str:
    """Sections apart by an empty line. ``full`` lists every finding and issue."""
    scale = page_scale(summary, exact=exact)
    findings = finding_lines(summary, scale, width, None if full else FIRST_SCREEN_FINDINGS)
    explain = explain_hint(summary.findings[0]) if summary.findings else ""
    if len(summary.findings) == 1 and len(findings[-1]) + 3 + len(explain) <= width:
        findings[-1] += f"   {explain}"
        explain = ""
    steps = ["--html FILE", *([] if full else ["--full"]), *([explain] if explain else [])]
    sections = [
        header_lines(summary, width, exact=exact) + peak_lines(summary, scale, width) + _table(summary, scale, width),
        source_lines(summary, scale, width),
        findings,
        issue_lines(summary, width, every=full),
        _closing(summary, scale, width) + _next(steps, width, trace_path),
    ]
    return "\n\n".join("\n".join(section) for section in sections if section) + "\n"


def page_scale(summary: Summary, *, exact: bool) -> Scale:
    """One unit for the page, by its largest peak."""
    peaks = (summary.peaks.load, summary.peaks.inference)
    largest = max((p.moment.private_bytes + p.moment.file_bytes for p in peaks if p), default=0)
    return choose_scale(largest, exact=exact)


def _table(summary: Summary, scale: Scale, width: int) -> list[str]:
    columns = table_columns(summary.peaks)
    rows = owner_rows(summary, columns, scale)
    if not rows:
        return ["no owners: none of ExecuTorch's memory was seen"] if not columns else ["owners withheld, see ISSUES"]
    beside = beside_row(columns)
    below = (*([beside] if beside else []), *device_rows(summary, columns))
    table = OwnerTable(scale, tuple(c.name for c in columns), (*rows, *below), width)
    return table.lines()


def _closing(summary: Summary, scale: Scale, width: int) -> list[str]:
    emulator = clean(summary.environment.emulator, 30)
    if emulator:
        how = "dry, " if summary.target.dry else ""
        return [f"{how}in {emulator}: counted bytes only; RSS would be the emulator's"]
    if summary.target.dry:
        return ["dry: counted bytes only, no RSS and no balance; outputs are not valid"]
    return balance_lines(summary, scale, width)


def _next(steps: list[str], width: int, trace_path: str | None) -> list[str]:
    """Where the trace is and what to do next, on one line where the last step fits beside a short path."""
    trace = [f"trace {clean(trace_path, min(TRACE_LIMIT, width - 8))}"] if trace_path else []
    lines = join_parts([*trace, f"next: {', '.join(steps)}"], width, gap="   ", indent="")
    if len(lines) > 1 and len(steps) > 2:
        return join_parts([*trace, f"next: {steps[0]}, {steps[-1]}"], width, gap="   ", indent="")
    return lines
