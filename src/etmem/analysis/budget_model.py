"""``etmem.budget/1`` and the verdict on it, as frozen dataclasses. All sizes are bytes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from etmem.model.words import Category

SCHEMA = "etmem.budget/1"
VERDICT_SCHEMA = "etmem.verdict/1"
RSS_TOLERANCE = 4 * 1024 * 1024
"""The least tolerance of a limit on RSS: library pages alone move it by half of that from run to run."""


class What(StrEnum):
    """Which phases, or which instant, a limit is on."""

    LOAD = "load"
    INFERENCE = "inference"
    FIRST_INFERENCE = "first_inference"
    LATER_INFERENCE = "later_inference"
    STEADY = "steady"
    OVERALL = "overall"


class Measure(StrEnum):
    PRIVATE = "private"
    """Requested private bytes of ExecuTorch and its delegates, at their peak."""
    LIVE = "live"
    """Private and file-backed bytes, at their peak."""
    RSS = "rss"
    """The kernel's high water over RSS before the first phase."""
    ALLOCATED = "allocated"
    """Bytes that were allocated, whether or not they were freed again."""
    ALLOCATIONS = "allocations"

    @property
    def unit(self) -> str:
        return "" if self is Measure.ALLOCATIONS else "B"


@dataclass(frozen=True)
class Tolerance:
    """Exactly one of the two is set; both null: none."""

    bytes: int | None = None
    percent: float | None = None

    def of(self, base: int) -> int:
        if self.bytes is not None:
            return self.bytes
        return int(base * self.percent / 100) if self.percent is not None else 0

    def __str__(self) -> str:
        return f"{self.percent:g} %" if self.percent is not None else f"{self.bytes or 0:,}"


@dataclass(frozen=True)
class Limit:
    what: What
    measure: Measure
    owner: str | None
    category: Category | None
    method: str | None
    max: int | None
    """Null: the limit is on the change from ``baseline``."""
    baseline: str | None
    """A trace, summary or bundle, relative to the budget's own folder."""
    tolerance: Tolerance
    name: str

    @property
    def subject(self) -> str:
        """``delegate:XnnpackBackend packed_weights of decode``; empty for all that is counted."""
        words = [self.owner or "", self.category.value if self.category else ""]
        words += [f"of {self.method}"] if self.method is not None else []
        return " ".join(word for word in words if word)


@dataclass(frozen=True)
class Budget:
    limits: tuple[Limit, ...]
    repeats: int
    """How often a program is run; the largest figure counts."""


class Status(StrEnum):
    OK = "ok"
    OVER = "over"
    ERROR = "error"
    """It could not be told: what the limit needs is not in the target."""


@dataclass(frozen=True)
class Outcome:
    limit: Limit
    status: Status
    value: int | None
    """The largest of the repeats."""
    allowed: int | None
    """``max`` or the baseline's value, tolerance included."""
    base: int | None
    """The baseline's value."""
    message: str
    repeats: int
    breakdown: tuple[tuple[str, int], ...] = ()
    """What the value is made of at that instant, largest first; empty where there is no instant."""


@dataclass(frozen=True)
class Verdict:
    target: str
    outcomes: tuple[Outcome, ...]
    schema: str = VERDICT_SCHEMA

    @property
    def status(self) -> Status:
        """An error outweighs a limit that was passed: the verdict is not complete."""
        found = {outcome.status for outcome in self.outcomes}
        if Status.ERROR in found or not found:
            return Status.ERROR
        return Status.OVER if Status.OVER in found else Status.OK
