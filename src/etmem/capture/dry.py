"""What a dry run leaves out, as issues: a report of one must not look like that of a real run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from etmem.delegates import descriptions
from etmem.model.summary import Issue
from etmem.model.words import IssueCode, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable

_MOST_NAMED = 4


def dry_issues(backends: Iterable[str], operators: Iterable[str]) -> tuple[Issue, ...]:
    """Of a dry run with these delegates and, outside of them, these operators."""
    computed = sorted(set(operators))
    unsupported = sorted(backend for backend in set(backends) if not _can_be_dry(backend))
    return (_outputs(computed), *(_unsupported(backend) for backend in unsupported))


def _can_be_dry(backend: str) -> bool:
    description = descriptions().get(backend)
    return description is not None and description.dry.symbol is not None


def _outputs(computed: list[str]) -> Issue:
    named = ", ".join(computed[:_MOST_NAMED]) + (", ..." if len(computed) > _MOST_NAMED else "")
    still = f"; {len(computed)} operators outside of delegates did: {named}" if computed else ""
    return Issue(
        IssueCode.DRY_OUTPUTS_INVALID,
        Severity.INFO,
        f"dry: delegates allocated and did not compute{still}",
        "Outputs are not valid, and RSS says nothing: bytes are counted. Leave --dry out to measure.",
        {"operators": computed},
    )


def _unsupported(backend: str) -> Issue:
    description = descriptions().get(backend)
    reason = description.dry.reason if description is not None else "etmem has no description of it"
    return Issue(
        IssueCode.DRY_UNSUPPORTED,
        Severity.WARNING,
        f"{backend} cannot be run dry, so it computed: {reason.rstrip('.')}",
        "Its bytes are those of a real run.",
        {"backend": backend},
    )
