"""``etmem.summary/1``: everything a report shows, as frozen dataclasses.

The fields are the JSON's fields, in order. All sizes are bytes, all times nanoseconds on the trace's
monotonic clock, counted from its start.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from etmem.model.words import (
    EXECUTORCH,
    Category,
    Certainty,
    FindingCode,
    IssueCode,
    MemoryKind,
    NoInstruction,
    PhaseKind,
    Severity,
    Source,
    Unit,
)

SCHEMA = "etmem.summary/1"


@dataclass(frozen=True)
class InputSpec:
    """One input of one method as it was run."""

    method: str
    index: int
    dtype: str
    shape: tuple[int, ...]
    upper_bound: bool = False
    """The shape is the file's upper bound of a dynamic dimension, not the caller's choice."""


@dataclass(frozen=True)
class Target:
    """What the figures belong to."""

    arch: str
    cpu: str
    isa: str
    """The instruction set that XNNPACK's tiles follow: avx512, avx2, sse..., neon."""
    pointer_bytes: int
    executorch: str
    runtime: str
    """``native`` (etmem-runner), ``python`` or ``command``."""
    loader: str
    iterations: int
    dry: bool
    preset: str
    backend_options: tuple[str, ...]
    threads: int | None
    inputs: tuple[InputSpec, ...]


@dataclass(frozen=True)
class Environment:
    """Where it ran; nothing here enters a comparison of counted bytes."""

    etmem: str
    python: str
    platform: str
    kernel: str
    libc: str
    allocator: str
    page_bytes: int
    memlock_limit_bytes: int | None
    command: tuple[str, ...]
    exit_status: int | None
    """The process's exit code, or minus the signal that ended it."""
    emulator: str = ""
    """``qemu-aarch64 7.2.22``, where the target's CPU is not this machine's: RSS would be the emulator's."""


@dataclass(frozen=True)
class ProgramInfo:
    program: int
    path: str | None
    file_bytes: int | None
    methods: tuple[str, ...]
    constant_methods: tuple[str, ...] = ()
    """Methods that only return constants, such as ``get_vocab_size``: they are not run."""


@dataclass(frozen=True)
class CategoryBytes:
    category: Category
    private_bytes: int
    file_bytes: int
    blocks: int


@dataclass(frozen=True)
class OwnerBytes:
    """One owner at one instant. ``instance`` is null for what instances share, and for other owners."""

    owner: str
    instance: str | None
    """``forward/XnnpackBackend[2]``."""
    private_bytes: int
    file_bytes: int
    categories: tuple[CategoryBytes, ...]


@dataclass(frozen=True)
class Moment:
    """What is live at one instant. The totals count ``executorch`` and ``delegate:*`` only."""

    time_ns: int
    private_bytes: int
    file_bytes: int
    owners: tuple[OwnerBytes, ...]
    """Host and profiler included, beside the totals."""


@dataclass(frozen=True)
class Rss:
    """RSS at a phase's edges, and the kernel's high water in between (null where it cannot be reset)."""

    start_bytes: int
    end_bytes: int
    peak_bytes: int | None


@dataclass(frozen=True)
class Phase:
    kind: PhaseKind
    program: int
    method: str | None
    iteration: int | None
    start_ns: int
    end_ns: int
    failed: bool
    peak: Moment
    peak_private: Moment
    live_start: Moment
    live_end: Moment
    allocated_bytes: int
    allocations: int
    unowned_bytes: int
    """Allocated on a thread inside the phase and ending as host's, claims excepted."""
    process_private_bytes: int
    """Peak of the whole process's requested private bytes in the phase."""
    rss: Rss | None


@dataclass(frozen=True)
class Peak:
    """The largest moment of a group of phases; ``phase`` is the index in ``Summary.phases``."""

    phase: int
    moment: Moment
    owner_peaks: tuple[OwnerBytes, ...]
    """Each owner at its own peak within the same group of phases."""


@dataclass(frozen=True)
class Peaks:
    load: Peak | None
    inference: Peak | None
    steady: Peak | None
    """The end of the last inference."""


@dataclass(frozen=True)
class ArenaUser:
    owner: str
    instance: str | None
    bytes: int
    allocations: int
    category: Category | None = None
    """By the tag that the thread was in; null in ExecuTorch's own allocators."""
    used_peak_bytes: int = 0
    """The most that it had out at once."""


@dataclass(frozen=True)
class Arena:
    """What an ExecuTorch allocator or a registered heap hands out from. It refines blocks and adds to no total."""

    name: str
    """``planned[<mem_id>]``, ``method_allocator``, ``temp_allocator``, or what a client calls its heap."""
    program: int
    method: str | None
    bytes: int
    """Given: the planned buffer's size, or all that was asked of the allocator."""
    used_peak_bytes: int | None
    """The most that was handed out at once; of planned memory, the most that the file has in use at once."""
    allocations: int
    users: tuple[ArenaUser, ...] = ()
    resident_bytes: int | None = None
    """Of planned memory, the pages that were resident at the last snapshot while it lived."""
    owner: str = EXECUTORCH


@dataclass(frozen=True)
class DelegateInfo:
    backend: str
    program: int
    method: str
    instance: int
    blob_bytes: int
    blob_released: str
    """``init``, ``unload`` or ``never``."""
    named_data_bytes: int
    init_peak_bytes: int
    """Peak private + file bytes of this delegate's own blocks during its init."""
    live_after_init_bytes: int
    first_execute_growth_bytes: int
    steady_bytes: int
    execute_allocations: int
    """Allocations in all its executes after the first."""
    shared_with: tuple[str, ...]
    """Instances that share its workspace or weight cache."""


@dataclass(frozen=True)
class LargestBlock:
    at: str
    """``load`` or ``inference``: live at that peak."""
    owner: str
    instance: str | None
    category: Category
    phase: PhaseKind | None
    """The phase it was allocated in; null outside of any."""
    requested_bytes: int
    count: int
    file: bool
    label: str = ""
    """What the program called it."""


@dataclass(frozen=True)
class BalanceLine:
    line: str
    bytes: int
    source: Source


@dataclass(frozen=True)
class Balance:
    """``rss_bytes == sum(lines) + unaccounted_bytes``, exactly."""

    at: str
    """``load`` (end of the last method load), ``first_inference``, ``last_inference``."""
    rss_bytes: int
    lines: tuple[BalanceLine, ...]
    unaccounted_bytes: int


@dataclass(frozen=True)
class HighWater:
    """The kernel's high water in a group of phases against the counted bytes at its peak."""

    at: str
    """``load`` or ``inference``."""
    high_water_bytes: int
    counted_bytes: int
    before_bytes: int
    """RSS when the first phase of the group began, less what was counted then."""
    other_bytes: int
    """high_water - counted - before."""


@dataclass(frozen=True)
class Finding:
    code: FindingCode
    owner: str
    bytes: int
    saving_bytes: int | None
    certainty: Certainty
    advice: str
    """Plain text, one or two sentences with the figures in it."""
    detail: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Issue:
    code: IssueCode
    severity: Severity
    message: str
    hint: str
    detail: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class SourceLine:
    """Where in the eager model something comes from, by the program's ETRecord."""

    file: str
    """Empty where the node has no stack trace."""
    line: int
    function: str
    text: str
    """The line itself, as it was when the model was exported."""
    module: str
    """Path of the submodule: ``layers.0``."""
    operator: str
    """The edge operator: ``aten.convolution.default``."""


@dataclass(frozen=True)
class InstructionBytes:
    """One instruction of a method, in its first inference or in all later ones.

    Bytes are those that peaks count, private and file. The rows of one method and ``at`` add up to its
    inferences' ``allocated_bytes`` and ``allocations``.
    """

    program: int
    method: str
    chain: int | None
    instruction: int | None
    """Its place in the chain; null for what belongs to none, see ``reason``."""
    operator: str
    """``aten::cumsum.out``; the backend of a delegate call."""
    instance: str | None
    """The delegate that it calls."""
    reason: NoInstruction | None
    at: str
    """``first`` or ``later``."""
    inferences: int
    """How many are in this row: allocated, freed and temp_bytes are their sum, all else their largest."""
    live_before_bytes: int
    live_after_bytes: int
    peak_bytes: int
    """The most that was live while it ran."""
    allocated_bytes: int
    allocations: int
    freed_bytes: int
    """Live memory that ended while it ran."""
    temp_bytes: int
    """Asked of the temp allocator."""
    temp_peak_bytes: int
    planned_live_bytes: int | None
    """Planned memory in use at this instruction, by the file; at the bounds of dynamic shapes."""
    sources: tuple[SourceLine, ...] = ()


@dataclass(frozen=True)
class PlannedTensor:
    """A place in planned memory for as long as it holds one thing; views of one tensor are one."""

    program: int
    method: str
    mem_id: int
    offset: int
    planned_bytes: int
    used_bytes: int | None
    """At the largest shapes that ran, where they are known; equal to planned_bytes for static shapes."""
    dtype: str
    shape: tuple[int, ...]
    """Of its largest tensor; the bound of dynamic ones."""
    first: int
    """The instruction that fills it; -1: there before the first. Chains count one after another."""
    last: int
    writer: str
    """The operator that fills it, ``input`` or ``state``."""
    at_peak: bool
    """In use at the instruction that needs the most planned memory."""
    sources: tuple[SourceLine, ...] = ()


@dataclass(frozen=True)
class PeakPart:
    """What an instruction holds at the peak: what was allocated while it ran and by the delegate it calls."""

    at: str
    """``load`` or ``inference``."""
    program: int
    method: str
    instruction: int
    operator: str
    instance: str | None
    bytes: int
    blocks: int
    running: bool
    """The peak was reached while it ran."""
    sources: tuple[SourceLine, ...] = ()


@dataclass(frozen=True)
class DelegateOperator:
    """What a delegate holds for one kind of its own operators at the peak of inference, where its calls tell."""

    owner: str
    instance: str | None
    operator: str
    """``convolution2d_nhwc_f32``."""
    category: Category
    bytes: int
    blocks: int


@dataclass(frozen=True)
class NamedScope:
    """What a program allocated while it was in scopes that it named; private and file bytes of every owner."""

    name: str
    """The names from the outside in: ``preprocess/resize``. An outer one has all of its inner ones in it."""
    entered: int
    allocated_bytes: int
    allocations: int
    peak_bytes: int
    """The most of it that was live at once."""
    live_end_bytes: int
    """Of it, what was live when recording ended."""


@dataclass(frozen=True)
class DeviceMemory:
    """A registered heap of memory that is not the host's: in no total, no peak and no balance."""

    memory: MemoryKind
    name: str
    owner: str
    category: Category
    load_peak_bytes: int | None
    """The most that was out in any load phase; null where there was none."""
    inference_peak_bytes: int | None
    steady_bytes: int | None
    """At the end of the last inference."""
    peak_bytes: int
    live_end_bytes: int
    allocated_bytes: int
    allocations: int
    users: tuple[ArenaUser, ...] = ()


@dataclass(frozen=True)
class Counter:
    """A named time series that the program recorded. A value holds until the next one."""

    name: str
    unit: Unit
    samples: int
    first: int
    last: int
    minimum: int
    maximum: int
    load_maximum: int | None
    """The largest that held in a load phase; null where none did."""
    inference_maximum: int | None
    source: str = ""
    """Empty: recorded by the program. Else sampled, and what its figures are: see docs/sources.md."""


@dataclass(frozen=True)
class Label:
    """Regions that the program gave one name, in blocks of one owner and category."""

    name: str
    owner: str
    instance: str | None
    category: Category
    regions: int
    peak_bytes: int
    """The most that lived at once."""


@dataclass(frozen=True)
class Summary:
    target: Target
    environment: Environment
    programs: tuple[ProgramInfo, ...]
    phases: tuple[Phase, ...]
    peaks: Peaks
    arenas: tuple[Arena, ...]
    delegates: tuple[DelegateInfo, ...]
    largest_blocks: tuple[LargestBlock, ...]
    balances: tuple[Balance, ...]
    high_waters: tuple[HighWater, ...]
    findings: tuple[Finding, ...]
    issues: tuple[Issue, ...]
    schema: str = SCHEMA
    instructions: tuple[InstructionBytes, ...] = ()
    planned_tensors: tuple[PlannedTensor, ...] = ()
    peak_parts: tuple[PeakPart, ...] = ()
    delegate_operators: tuple[DelegateOperator, ...] = ()
    named_scopes: tuple[NamedScope, ...] = ()
    device_memory: tuple[DeviceMemory, ...] = ()
    counters: tuple[Counter, ...] = ()
    labels: tuple[Label, ...] = ()
