"""What a summary is made for: everything that the trace itself does not say."""

from __future__ import annotations

from dataclasses import dataclass

from etmem.model.summary import Environment, Issue, Target

FOLD_FROM = 1 << 20
"""Events. Rows of all blocks of fewer cost no time and no memory worth saving."""


@dataclass(frozen=True)
class SummaryOptions:
    target: Target
    environment: Environment
    dry: bool = False
    """Nothing was computed, or on another CPU: counted bytes only, no RSS, residency or balance."""
    issues: tuple[Issue, ...] = ()
    """What the capture found; analysis puts its own behind."""
    fold_from: int | None = FOLD_FROM
    """So many events make a trace long: its short-lived blocks share rows, where that saves enough of them.
    0: always, whatever it saves. None: every block has its own."""
