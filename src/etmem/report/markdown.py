"""A report for a pull request: peaks, owners by category, findings and issues as Markdown tables."""

from __future__ import annotations

import re
from collections.abc import Iterator

from etmem.model.summary import Moment, Summary
from etmem.model.words import is_counted
from etmem.report.balance import line_name
from etmem.report.header import header_lines
from etmem.report.names import category_name, owner_name, phase_name
from etmem.report.units import Scale, choose_scale, clean, file_name
from etmem.report.view import View

MOST_ROWS = 16
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#!|~$@&])")
_MOMENTS = ("load", "inference", "steady")


def render(view: View) -> bytes:
    return markdown(view.summary).encode("ascii")


def markdown(summary: Summary) -> str:
    """ASCII. No name of a file can be taken for markup."""
    moments = {at: peak.moment for at in _MOMENTS if (peak := getattr(summary.peaks, at)) is not None}
    scale = choose_scale(max((_total(moment) for moment in moments.values()), default=0))
    parts = (
        _title(summary),
        _peaks(summary, moments, scale),
        _owners(moments, scale),
        _balance(summary),
        _remarks(summary),
    )
    return "\n".join(line for part in parts for line in part) + "\n"


def escape(text: str, limit: int = 200) -> str:
    """Text that stays text, in a table too."""
    return _SPECIAL.sub(r"\\\1", clean(text, limit))


def _total(moment: Moment) -> int:
    return moment.private_bytes + moment.file_bytes


def _title(summary: Summary) -> Iterator[str]:
    names = [file_name(program.path) for program in summary.programs]
    yield f"### Memory of {escape(', '.join(names) or 'the command')}"
    yield ""
    yield "  \n".join(escape(line) for line in header_lines(summary, 160, exact=False))
    yield ""


def _peaks(summary: Summary, moments: dict[str, Moment], scale: Scale) -> Iterator[str]:
    yield f"| {scale.unit} | total | private | file-backed | in |"
    yield "|---|--:|--:|--:|---|"
    for at in _MOMENTS:
        name = "steady" if at == "steady" else f"**peak of {at}**"
        if at not in moments:
            yield f"| {name} | - | - | - | nothing seen |"
            continue
        moment = moments[at]
        where = escape(phase_name(summary.phases[getattr(summary.peaks, at).phase], programs=len(summary.programs)))
        sizes = (_total(moment), moment.private_bytes, moment.file_bytes)
        yield f"| {name} | {' | '.join(scale.number(size) for size in sizes)} | {where} |"
    yield ""


def _owners(moments: dict[str, Moment], scale: Scale) -> Iterator[str]:
    """Owners and categories, their instances together, largest first."""
    rows: dict[tuple[str, str], dict[str, int]] = {}
    for at, moment in moments.items():
        for owner in moment.owners:
            for one in owner.categories if is_counted(owner.owner) else ():
                row = rows.setdefault(
                    (owner_name(owner.owner), category_name(one.category)), dict.fromkeys(_MOMENTS, 0)
                )
                row[at] += one.private_bytes + one.file_bytes
    if not rows:
        return
    ordered = sorted(rows.items(), key=lambda item: (-max(item[1].values()), item[0]))
    yield f"| {scale.unit} | | load | inference | steady |"
    yield "|---|---|--:|--:|--:|"
    for (name, category), sizes in ordered[:MOST_ROWS]:
        figures = " | ".join(scale.number(sizes[at]) for at in _MOMENTS)
        yield f"| {escape(name)} | {category} | {figures} |"
    if len(ordered) > MOST_ROWS:
        rest = {at: sum(sizes[at] for _, sizes in ordered[MOST_ROWS:]) for at in _MOMENTS}
        yield f"| {len(ordered) - MOST_ROWS} more | | {' | '.join(scale.number(rest[at]) for at in _MOMENTS)} |"
    yield ""


def _balance(summary: Summary) -> Iterator[str]:
    if not summary.balances:
        return
    balance = summary.balances[-1]
    scale = choose_scale(balance.rss_bytes)
    terms = [f"{escape(line_name(line.line))} {scale.fine(line.bytes)}" for line in balance.lines]
    terms.append(f"unaccounted {scale.fine(balance.unaccounted_bytes)}")
    yield f"RSS at rest {scale.plain(balance.rss_bytes)} {scale.unit} = {' + '.join(terms)}".replace(
        "+ unaccounted -", "- unaccounted "
    )
    yield ""


def _remarks(summary: Summary) -> Iterator[str]:
    """Findings, largest saving first, and what may be wrong with the figures."""
    scale = choose_scale(max((finding.bytes for finding in summary.findings), default=0))
    ordered = sorted(summary.findings, key=lambda one: (-(one.saving_bytes or 0), -one.bytes))
    for finding in ordered:
        saving = (
            f", saves {scale.with_unit(finding.saving_bytes)} ({finding.certainty.value})"
            if finding.saving_bytes
            else ""
        )
        yield f"- **{finding.code.value}** {scale.with_unit(finding.bytes)}{saving}: {escape(finding.advice, 400)}"
    for issue in summary.issues:
        yield f"- {issue.severity.value} **{issue.code.value}**: {escape(issue.message, 400)}"
