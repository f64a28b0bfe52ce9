"""A verdict as text, JSON and Markdown. Sizes stand in bytes: a limit is a number of them."""

from __future__ import annotations

import json

from etmem.analysis.budget_model import Limit, Outcome, Status, Verdict
from etmem.model.codec import to_data
from etmem.report.markdown_table import code, table
from etmem.report.table import MIN_WIDTH, grid, wrap
from etmem.report.units import clean

_ROWS = 5
_WORDS = {Status.OK: "ok", Status.OVER: "OVER", Status.ERROR: "ERROR"}


def render(verdict: Verdict, *, width: int = MIN_WIDTH) -> str:
    """ASCII lines of at most ``width`` (80 at least)."""
    counts = {status: sum(o.status is status for o in verdict.outcomes) for status in Status}
    word = {Status.OK: "WITHIN BUDGET", Status.OVER: "OVER BUDGET", Status.ERROR: "NO VERDICT"}[verdict.status]
    parts = [f"{count} {status.value}" for status, count in counts.items() if count]
    lines = wrap(f"{word}  {clean(verdict.target, 60)}  {', '.join(parts)}", max(width, MIN_WIDTH))
    rows = [(_WORDS[o.status], title(o.limit), _number(o.value), _number(o.allowed)) for o in verdict.outcomes]
    lines += grid(("", "bytes unless allocations", "is", "allowed"), rows, 2, width)
    for outcome in verdict.outcomes:
        if outcome.status is not Status.OK:
            lines += _details(outcome, width)
    return "\n".join(lines) + "\n"


def title(limit: Limit) -> str:
    """``load private, delegate:XnnpackBackend``; the limit's own name where it has one."""
    what = f"{limit.what.value.replace('_', ' ')} {limit.measure.value}"
    full = f"{what}, {clean(limit.subject, 48)}" if limit.subject else what
    return f"{clean(limit.name, 40)}: {full}" if limit.name else full


def _details(outcome: Outcome, width: int) -> list[str]:
    lines = ["", *wrap(f"{_WORDS[outcome.status]} {title(outcome.limit)}: {clean(outcome.message, 400)}", width)]
    rows = [(f"  {clean(name, 50)}", f"{size:,}") for name, size in outcome.breakdown[:_ROWS]]
    return lines + (grid(("", ""), rows, 1, width)[1:] if rows else [])


def _number(count: int | None) -> str:
    return "none" if count is None else f"{count:,}"


def to_json(verdict: Verdict) -> str:
    """``etmem.verdict/1``; ``schema`` and ``status`` come first."""
    data = to_data(verdict)
    for outcome in data["outcomes"]:
        outcome["breakdown"] = [{"what": name, "bytes": size} for name, size in outcome["breakdown"]]
    head = {"schema": data.pop("schema"), "status": verdict.status.value}
    return json.dumps({**head, **data}, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def to_markdown(verdict: Verdict) -> str:
    word = {Status.OK: "within budget", Status.OVER: "**over budget**", Status.ERROR: "**no verdict**"}[verdict.status]
    rows = [
        (_WORDS[o.status], title(o.limit).replace("<", "&lt;"), _number(o.value), _number(o.allowed), clean(o.message))
        for o in verdict.outcomes
    ]
    return f"### {code(verdict.target)}: {word}\n\n" + table(("", "limit", "is", "allowed", ""), rows, "llrrl")
