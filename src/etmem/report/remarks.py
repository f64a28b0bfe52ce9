"""Findings on the model and issues of the data, as numbered and wrapped sentences."""

from __future__ import annotations

from collections.abc import Iterable

from etmem.model.summary import Finding, Issue, Summary
from etmem.model.words import Certainty, Severity
from etmem.report.table import wrap
from etmem.report.units import Scale, clean

FIRST_SCREEN_FINDINGS = 3
WORTH_SAYING = 0.01
"""Share of a finding's bytes under which its saving is not said."""
ADVICE_LIMIT = 600
MESSAGE_LIMIT = 400


def finding_lines(summary: Summary, scale: Scale, width: int, limit: int | None) -> list[str]:
    """``FINDINGS`` in the summary's order (largest saving first), at most ``limit`` of them."""
    shown = summary.findings[:limit]
    if not shown:
        return []
    widths = max(15, *(len(f.code.value) for f in shown)), max(len(scale.with_unit(f.bytes)) for f in shown)
    lines = ["FINDINGS"]
    for number, finding in enumerate(shown, 1):
        lines += _finding(number, finding, scale, width, widths)
    left = len(summary.findings) - len(shown)
    return [*lines, f"and {left} more: --full"] if left else lines


def _finding(number: int, finding: Finding, scale: Scale, width: int, widths: tuple[int, int]) -> list[str]:
    head = f"{number} {finding.code.value.ljust(widths[0])}"
    if finding.bytes:
        head += f"  {scale.with_unit(finding.bytes).rjust(widths[1])}"
    return wrap(f"{head}  {clean(finding.advice, ADVICE_LIMIT)}{_saving(finding, scale)}", width, rest="  ")


def _saving(finding: Finding, scale: Scale) -> str:
    """Said here only where the advice does not say it."""
    saving = finding.saving_bytes
    if saving is None or saving < WORTH_SAYING * finding.bytes or "save" in finding.advice.lower():
        return ""
    word = {Certainty.EXACT: "saves", Certainty.ESTIMATED: "saves about", Certainty.POSSIBLE: "may save"}
    return f" ({word[finding.certainty]} {scale.with_unit(saving)})"


def explain_hint(finding: Finding) -> str:
    return f"etmem explain {finding.code.value}"


def issue_lines(summary: Summary, width: int, *, every: bool) -> list[str]:
    """Warnings and errors with their hints, errors first; ``every``: the informal ones too."""
    return issues_of(summary.issues, width, every=every)


def issues_of(issues: Iterable[Issue], width: int, *, every: bool) -> list[str]:
    """The same for issues that belong to no summary."""
    found = tuple(issues)
    order = [Severity.ERROR, Severity.WARNING, *([Severity.INFO] if every else [])]
    shown = [issue for severity in order for issue in found if issue.severity is severity]
    if not shown:
        return []
    return ["ISSUES", *(line for issue in shown for line in _issue(issue, width))]


def _issue(issue: Issue, width: int) -> list[str]:
    head = f"{issue.severity.value} {issue.code.value}  {clean(issue.message, MESSAGE_LIMIT)}"
    lines = wrap(head, width, rest="  ")
    return lines + wrap(clean(issue.hint, MESSAGE_LIMIT), width, first="  hint: ", rest="  ") if issue.hint else lines
