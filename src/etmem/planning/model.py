"""``etmem.plan/1``: what a program file tells, as frozen dataclasses. Sizes are bytes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from etmem.delegates.estimating import Sureness
from etmem.model.summary import Finding, InputSpec
from etmem.model.words import Category
from etmem.planning.targets import PlanTarget

SCHEMA = "etmem.plan/1"


@dataclass(frozen=True)
class Part:
    """A part of a file."""

    kind: str
    """``program`` (the flatbuffer), ``constants``, ``initial_values``, ``named_data``, ``delegate_blob``,
    ``padding``."""
    name: str
    bytes: int
    count: int
    used_by: tuple[str, ...]
    """Delegates or methods, where it is theirs: ``forward/XnnpackBackend[0]``."""


@dataclass(frozen=True)
class Contents:
    path: str | None
    file_bytes: int
    parts: tuple[Part, ...]
    """Their bytes add up to ``file_bytes``."""
    named_data: tuple[Part, ...]
    """The tensors in the parts ``named_data``, by the delegates that load them."""


@dataclass(frozen=True)
class Placed:
    """A place in an arena, and how long it holds one thing."""

    label: str
    kind: str
    """``input``, ``output``, ``mutable`` or ``temporary``."""
    offset: int
    bytes: int
    first: int
    """The instruction that fills it; -1: it is there before the first."""
    last: int
    tensors: int
    """How many tensors are on these bytes."""


@dataclass(frozen=True)
class ArenaMap:
    """One planned buffer of a method."""

    mem_id: int
    bytes: int
    live_peak_bytes: int
    """The most bytes that are live in it at once: no plan can be smaller."""
    uncut_peak_bytes: int
    """The same if no graph break cut a backend's part of the method."""
    peak: int
    """The instruction of the peak; -1 before the first."""
    peak_instruction: str
    placed: tuple[Placed, ...]

    @property
    def waste_bytes(self) -> int:
        return max(0, self.bytes - self.live_peak_bytes)

    @property
    def break_bytes(self) -> int:
        """What graph breaks put into it."""
        return max(0, self.live_peak_bytes - self.uncut_peak_bytes)

    @property
    def live_at_peak(self) -> tuple[Placed, ...]:
        """Largest first."""
        live = [place for place in self.placed if place.first <= self.peak <= place.last]
        return tuple(sorted(live, key=lambda place: (-place.bytes, place.offset)))

    def bytes_of(self, kind: str) -> int:
        return sum(place.bytes for place in self.placed if place.kind == kind)


@dataclass(frozen=True)
class PoolSizes:
    """What bump allocators would hold: ExecuTorch's method and temp pool, padding included."""

    pointer_bytes: int
    temp_pool: bool
    method_bytes: int
    temp_bytes: int
    """High water while the method is loaded and while its delegates run; kernels may ask for more when they run."""
    temp_load_bytes: int
    """While it is loaded."""
    delegates_bytes: int | None
    """Of the method pool, what delegates ask for; None where one does not tell."""


@dataclass(frozen=True)
class DelegateUse:
    backend: str
    instance: int
    blob_bytes: int
    named_data_bytes: int
    sure: Sureness
    note: str
    """Why the estimate is not exact; empty where it is."""


@dataclass(frozen=True)
class MethodPlan:
    name: str
    inputs: tuple[InputSpec, ...]
    instructions: tuple[str, ...]
    operators: int
    """Different kernels that it calls."""
    kernel_calls: int
    delegates: tuple[DelegateUse, ...]
    arenas: tuple[ArenaMap, ...]
    pools: tuple[PoolSizes, ...]
    dynamic_bound_bytes: int
    """Of planned memory, what dynamic tensors hold at their upper bounds."""
    dynamic_used_bytes: int | None
    """The same at the shapes given; None where none is given."""
    mutable_bytes: int
    """Of planned memory, what keeps its content from one inference to the next: KV caches."""
    mutable_copies_bytes: int
    """Of planned memory, the most that copies of those hold at once."""
    caller_bytes: int
    """Inputs and outputs that the caller brings; the others are in planned memory."""


@dataclass(frozen=True)
class Line:
    """One owner's category in the estimate."""

    owner: str
    instance: str | None
    category: Category
    private_bytes: int
    file_bytes: int
    low_bytes: int
    high_bytes: int | None
    """None: at least ``low_bytes``, nothing tells how much more."""
    sure: Sureness


@dataclass(frozen=True)
class Forecast:
    """What will be live at one moment."""

    at: str
    """``load``, ``inference`` and ``later`` (peaks: of the first inference and of all after it), ``steady``
    (the end of an inference)."""
    method: str | None
    private_bytes: int
    file_bytes: int
    low_bytes: int
    """Private and file."""
    high_bytes: int | None
    sure: Sureness
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Need:
    """A part of what a budget has to hold."""

    name: str
    bytes: int


@dataclass(frozen=True)
class Verdict:
    """Whether a budget holds."""

    budget: str
    budget_bytes: int
    need_bytes: int
    fits: bool | None
    """None: it cannot be told, ``reason`` says why."""
    reason: str
    parts: tuple[Need, ...] = ()

    @property
    def left_bytes(self) -> int:
        return self.budget_bytes - self.need_bytes


@dataclass(frozen=True)
class ProgramPlan:
    target: PlanTarget
    loader: str
    preset: str
    options: dict[str, str]
    contents: tuple[Contents, ...]
    """The program's file, then its data files."""
    methods: tuple[MethodPlan, ...]
    constant_methods: tuple[str, ...]
    shared_arena_saving_bytes: int
    """What methods would save if they shared planned buffers of one mem_id."""
    estimate: tuple[Forecast, ...]
    """Empty for a microcontroller: its pools are the estimate."""
    verdicts: tuple[Verdict, ...]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    """What the file cannot tell."""
    schema: str = field(default=SCHEMA)

    def forecast(self, at: str) -> Forecast | None:
        return next((forecast for forecast in self.estimate if forecast.at == at), None)

    def text(self, *, bytes_exact: bool = False, full: bool = False, width: int = 80) -> str:
        from etmem.report.plan import render

        return render(self, width=width, bytes_exact=bytes_exact, full=full)

    def to_json(self) -> str:
        from etmem.report.plan_json import to_json

        return to_json(self)

    def to_dataframe(self, table: str = "estimate") -> Any:
        """A pandas DataFrame of one table; ``etmem.planning.tables.TABLES`` has their names."""
        from etmem.planning.tables import dataframe

        return dataframe(self, table)
