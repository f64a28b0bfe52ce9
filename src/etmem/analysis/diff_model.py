"""``etmem.diff/1``: what changed from one run to another, as frozen dataclasses. All sizes are bytes.

A delta is always ``b - a``. Only what differs is listed: the diff of two equal runs has no rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from etmem.model.words import Category, PhaseKind

SCHEMA = "etmem.diff/1"


class MismatchCode(StrEnum):
    """Why two runs are not like for like."""

    ARCH = "other_arch"
    ISA = "other_isa"
    POINTER_WIDTH = "other_pointer_width"
    PAGE_SIZE = "other_page_size"
    ALLOCATOR = "other_allocator"
    INPUTS = "other_inputs"
    METHODS = "other_methods"
    LOADER = "other_loader"
    RUNTIME = "other_runtime"
    EXECUTORCH = "other_executorch"
    PRESET = "other_preset"
    BACKEND_OPTIONS = "other_backend_options"
    THREADS = "other_threads"
    ITERATIONS = "other_iterations"
    DRY = "dry_and_computed"
    FAILED = "failed_run"
    OWNERS_WITHHELD = "owners_withheld"

    @property
    def short(self) -> str:
        """What the first line of a diff calls it: ``isa``, ``inputs``, ``dry``."""
        words = {
            MismatchCode.DRY: "dry",
            MismatchCode.OWNERS_WITHHELD: "owners",
            MismatchCode.EXECUTORCH: "executorch version",
        }
        return words.get(self) or self.value.removeprefix("other_").replace("_", " ")


class Spoils(StrEnum):
    """What a mismatch makes unlike for reasons other than the program."""

    LOAD = "load"
    INFERENCE = "inference"
    BLOCKS = "blocks"
    ALLOCATIONS = "allocations"
    RSS = "rss"


@dataclass(frozen=True)
class Mismatch:
    code: MismatchCode
    a: str
    b: str
    effect: str
    """What follows for the figures, in one sentence."""
    spoils: tuple[Spoils, ...]


@dataclass(frozen=True)
class Figures:
    """Private and file bytes of one thing in one run."""

    private_bytes: int = 0
    file_bytes: int = 0
    blocks: int = 0

    @property
    def total(self) -> int:
        return self.private_bytes + self.file_bytes


@dataclass(frozen=True)
class PeakChange:
    """The counted totals at one instant; listed whether or not they changed. Null: the run has no such instant."""

    at: str
    """``load``, ``inference`` or ``steady``."""
    a: Figures | None
    b: Figures | None
    delta_bytes: int
    comparable: bool


@dataclass(frozen=True)
class Change:
    """One owner's category at one instant, all instances together."""

    at: str
    owner: str
    category: Category
    a: Figures
    b: Figures
    delta_bytes: int
    share: float
    """Of the sum of all absolute changes at this instant."""


@dataclass(frozen=True)
class InstanceChange:
    """One delegate instance at one instant; what instances share has none."""

    at: str
    instance: str
    a: Figures
    b: Figures
    delta_bytes: int


@dataclass(frozen=True)
class PhaseChange:
    kind: PhaseKind
    program: int
    method: str | None
    iteration: int | None
    turn: int
    """Which of the phases that are alike in all the above, from 0."""
    a_peak_bytes: int | None
    """Null: the run has no such phase."""
    b_peak_bytes: int | None
    a_live_end_bytes: int | None
    b_live_end_bytes: int | None
    a_allocations: int | None
    b_allocations: int | None
    delta_bytes: int
    """Of the peaks."""


@dataclass(frozen=True)
class ArenaChange:
    name: str
    program: int
    method: str | None
    a_bytes: int | None
    b_bytes: int | None
    delta_bytes: int


@dataclass(frozen=True)
class OperatorChange:
    """What the blocks of one operator of a delegate hold at one instant."""

    at: str
    owner: str
    operator: str
    category: Category
    a: Figures
    b: Figures
    delta_bytes: int


@dataclass(frozen=True)
class BlockChange:
    """Blocks of one size that one run has more of."""

    at: str
    owner: str
    category: Category
    operator: str | None
    requested_bytes: int
    file: bool
    a_count: int
    b_count: int
    delta_bytes: int


@dataclass(frozen=True)
class Beside:
    """What is measured or the application's own: it varies from run to run and is no part of the change."""

    what: str
    """``RSS growth, load``, ``host inputs_outputs``, ..."""
    a_bytes: int | None
    b_bytes: int | None


class ReasonCode(StrEnum):
    FINDING_NEW = "finding_new"
    FINDING_GONE = "finding_gone"
    FINDING_CHANGED = "finding_changed"
    DELEGATES = "delegates"
    PROGRAM = "program"
    CONFIGURATION = "configuration"


@dataclass(frozen=True)
class Reason:
    code: ReasonCode
    subject: str
    """The finding's code, the backend, or what is configured otherwise."""
    delta_bytes: int | None
    """Null where the reason has no figure of its own."""
    text: str
    detail: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Diff:
    a: str
    b: str
    mismatches: tuple[Mismatch, ...]
    peaks: tuple[PeakChange, ...]
    changes: tuple[Change, ...]
    instances: tuple[InstanceChange, ...]
    phases: tuple[PhaseChange, ...]
    arenas: tuple[ArenaChange, ...]
    operators: tuple[OperatorChange, ...]
    blocks: tuple[BlockChange, ...]
    blocks_compared: str
    """``all`` (two traces), ``largest`` (of a summary) or ``no``."""
    reasons: tuple[Reason, ...]
    beside: tuple[Beside, ...]
    schema: str = SCHEMA

    @property
    def empty(self) -> bool:
        """Nothing that was counted differs."""
        rows = (self.changes, self.instances, self.phases, self.arenas, self.operators, self.blocks)
        return not any(rows) and not any(peak.delta_bytes for peak in self.peaks)

    def changes_at(self, at: str) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.at == at)
