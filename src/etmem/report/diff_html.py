"""A diff as one HTML page without scripts: two timelines on one scale, what moved, and why."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from etmem.analysis.diff_model import Diff
from etmem.model.summary import Summary
from etmem.report.diff import unlike
from etmem.report.diff_timeline import COLOURS, highest, owners, timeline
from etmem.report.names import category_name, owner_name
from etmem.report.units import clean, file_size

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>
body {{ font: 15px/1.45 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }}
h1 {{ font-size: 1.3rem; }} h2 {{ font-size: 1.05rem; margin-top: 2rem; }}
table {{ border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }}
th, td {{ text-align: right; padding: .2rem .6rem; border-bottom: 1px solid #8884; }}
th:first-child, td:first-child {{ text-align: left; }}
svg {{ width: 100%; height: auto; }} svg text {{ font-size: 11px; fill: currentColor; }}
svg line {{ stroke: #8886; }} .phase {{ fill: #8881; }} .scale {{ text-anchor: end; }}
.key {{ display: inline-block; width: .8rem; height: .8rem; margin: 0 .35rem 0 1rem; }}
.wide {{ overflow-x: auto; }}
</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


def render(diff: Diff, a: Summary, b: Summary) -> str:
    """The same diff gives the same bytes."""
    names = owners((a, b))
    top = highest((a, b))
    parts = [f"<h1>{_text(diff.a)} → {_text(diff.b)}</h1>"]
    if diff.mismatches:
        parts.append(f"<p>Not alike: {_text(unlike(diff.mismatches))}.</p>")
    parts += [_peaks(diff), _legend(names)]
    parts += [
        f"<h2>{letter}: {_text(name)}</h2>{timeline(run, names, top, name)}"
        for letter, name, run in (("a", diff.a, a), ("b", diff.b, b))
    ]
    parts += ["<p>No change: every counted byte is the same.</p>"] if diff.empty else _tables(diff)
    parts += _reasons(diff)
    return _PAGE.format(title=f"{_text(diff.a)} → {_text(diff.b)} - etmem", body="\n".join(parts))


def _peaks(diff: Diff) -> str:
    rows = []
    for peak in diff.peaks:
        sizes = [file_size(figures.total) if figures else "none" for figures in (peak.a, peak.b)]
        change = f"{peak.delta_bytes:+,} B" if peak.delta_bytes else "0"
        name = f"peak of {peak.at}" if peak.at != "steady" else "steady"
        rows.append((name, *sizes, change if peak.comparable else f"{change} (not alike)"))
    return _table(("", "a", "b", "change"), rows)


def _tables(diff: Diff) -> list[str]:
    found = []
    for peak in diff.peaks:
        rows = [
            (
                f"{owner_name(row.owner)} {category_name(row.category)}",
                f"{row.a.total:,}", f"{row.b.total:,}", f"{row.delta_bytes:+,}", f"{100 * row.share:.0f} %",
            )
            for row in diff.changes_at(peak.at)
        ]  # fmt: skip
        found += _section(f"At {peak.at}, bytes", ("", "a", "b", "change", "share"), rows)
    found += _section(
        "Delegate instances, bytes", ("", "at", "a", "b", "change"),
        [(i.instance, i.at, f"{i.a.total:,}", f"{i.b.total:,}", f"{i.delta_bytes:+,}") for i in diff.instances],
    )  # fmt: skip
    found += _section(
        "Operators, bytes", ("", "at", "a", "b", "change"),
        [(f"{o.operator} {category_name(o.category)}", o.at, f"{o.a.total:,}", f"{o.b.total:,}", f"{o.delta_bytes:+,}")
         for o in diff.operators],
    )  # fmt: skip
    return found + _section(
        f"Blocks ({diff.blocks_compared} compared)", ("", "at", "each", "a", "b", "change"),
        [
            (b.operator or f"{owner_name(b.owner)} {category_name(b.category)}", b.at, f"{b.requested_bytes:,}",
             str(b.a_count), str(b.b_count), f"{b.delta_bytes:+,}")
            for b in diff.blocks
        ],
    )  # fmt: skip


def _reasons(diff: Diff) -> list[str]:
    rows = [
        f"<li><b>{_text(reason.subject)}</b>"
        f"{f' ({reason.delta_bytes:+,} B)' if reason.delta_bytes is not None else ''}: {_text(reason.text)}</li>"
        for reason in diff.reasons
    ]
    return ["<h2>Reasons</h2>", "<ul>", *rows, "</ul>"] if rows else []


def _legend(names: Sequence[str]) -> str:
    marks = (
        f'<span class="key" style="background:{COLOURS[at % len(COLOURS)]}"></span>{_text(owner_name(name))}'
        for at, name in enumerate(names)
    )
    return f"<p>{''.join(marks)}</p>"


def _section(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"<h2>{_text(title)}</h2>", f'<div class="wide">{_table(header, rows)}</div>'] if rows else []


def _table(header: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{_text(cell)}</th>" for cell in header)
    body = "".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _text(text: str) -> str:
    """Names come from files: no markup, no control characters."""
    return html.escape(clean(text))
