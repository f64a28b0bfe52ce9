"""The words of etmem: owners, categories, phases, issues and findings.

They are the public vocabulary of the summary, the reports, budgets and diffs. Renaming one is a
breaking change of ``etmem.summary/1``.
"""

from __future__ import annotations

from enum import StrEnum

EXECUTORCH = "executorch"
HOST = "host"
PROFILER = "profiler"


def delegate(backend: str) -> str:
    """The owner name of a backend id: ``delegate:XnnpackBackend``."""
    return f"delegate:{backend}"


def is_counted(owner: str) -> bool:
    """Whether peaks count this owner: ExecuTorch and its delegates, never host or profiler."""
    return owner == EXECUTORCH or is_delegate(owner)


def is_delegate(owner: str) -> bool:
    return owner.startswith("delegate:")


class Category(StrEnum):
    """What memory is for. The owner decides which apply."""

    PROGRAM = "program"
    CONSTANTS = "constants"
    PLANNED_MEMORY = "planned_memory"
    METHOD_ALLOCATOR = "method_allocator"
    TEMP_ALLOCATOR = "temp_allocator"
    KERNEL_SCRATCH = "kernel_scratch"
    ORIGINAL_WEIGHTS = "original_weights"
    PACKED_WEIGHTS = "packed_weights"
    WORKSPACE = "workspace"
    OPERATOR_BUFFERS = "operator_buffers"
    METADATA = "metadata"
    LIBRARIES = "libraries"
    INPUTS_OUTPUTS = "inputs_outputs"
    STACKS = "stacks"
    OTHER = "other"


class PhaseKind(StrEnum):
    """A phase of a program's life; time between phases is in none."""

    PROGRAM_LOAD = "program_load"
    METHOD_LOAD = "method_load"
    INFERENCE = "inference"
    UNLOAD = "unload"

    @property
    def is_load(self) -> bool:
        return self in (PhaseKind.PROGRAM_LOAD, PhaseKind.METHOD_LOAD)


class MemoryKind(StrEnum):
    """Where memory is that is not the host's."""

    GPU = "gpu"
    NPU = "npu"
    DMA_BUF = "dma_buf"
    OTHER_DEVICE = "other_device"


class Unit(StrEnum):
    """What a counter counts."""

    NUMBER = "number"
    BYTES = "bytes"


class NoInstruction(StrEnum):
    """Why memory belongs to no instruction of a method."""

    PROGRAM_LOAD = "program_load"
    METHOD_LOAD = "method_load"
    UNLOAD = "unload"
    """Instructions run in inferences only."""
    BETWEEN_INSTRUCTIONS = "between_instructions"
    """The inference's own work, before, between and after its instructions."""
    NO_EVENT_TRACER = "no_event_tracer"
    """This ExecuTorch was built without ET_EVENT_TRACER_ENABLED and tells no instructions."""
    OWN_THREAD = "own_thread"
    """A thread that the delegate started in another phase."""
    SEVERAL_INFERENCES = "several_inferences"
    """A pool thread while several inferences ran."""


class Severity(StrEnum):
    """``ERROR``: a printed figure is wrong or missing (exit code 4)."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class IssueCode(StrEnum):
    """Typed remarks on the data. ``etmem explain CODE`` says what to do."""

    EVENTS_DROPPED = "events_dropped"
    TRACE_TRUNCATED = "trace_truncated"
    DISK_FULL = "disk_full"
    METHODS_LOADED_BEFORE_ATTACH = "methods_loaded_before_attach"
    HOOK_NOT_REACHED = "hook_not_reached"
    HOOKS_UNAVAILABLE = "hooks_unavailable"
    EXECUTORCH_STATIC = "executorch_static"
    UNTYPED_HOOKS = "untyped_hooks"
    NO_EXECUTORCH = "no_executorch"
    MEMLOCK_LIMITED = "memlock_limited"
    HIGH_WATER_UNAVAILABLE = "high_water_unavailable"
    RESIDENCY_UNAVAILABLE = "residency_unavailable"
    OTHER_ALLOCATOR = "other_allocator"
    CONCURRENT_INFERENCES = "concurrent_inferences"
    PROCESS_KILLED = "process_killed"
    PROGRAM_FAILED = "program_failed"
    PYTHON_FALLBACK = "python_fallback"
    DRY_OUTPUTS_INVALID = "dry_outputs_invalid"
    DRY_UNSUPPORTED = "dry_unsupported"
    DRY_STOPPED = "dry_stopped"
    NO_EVENT_TRACER = "no_event_tracer"
    NO_DELEGATE_DESCRIPTION = "no_delegate_description"
    DESCRIPTION_BY_READING = "description_by_reading"
    UNVERSIONED_EXECUTORCH = "unversioned_executorch"
    SOURCE_FAILED = "source_failed"
    SYMBOLS_MISSING = "symbols_missing"
    PROFILE_REMARK = "profile_remark"
    ETRECORD_REFUSED = "etrecord_refused"
    API_MISUSE = "api_misuse"
    CALL_STACKS_FULL = "call_stacks_full"
    MALLOC_NOT_FOLLOWED = "malloc_not_followed"


class FindingCode(StrEnum):
    """Typed remarks on the model. ``etmem explain CODE`` says what to do."""

    DOUBLE_WEIGHTS = "double_weights"
    PACKED_TWICE = "packed_twice"
    DYNAMIC_BOUND = "dynamic_bound"
    GRAPH_BREAK = "graph_break"
    INDIRECTION_BUFFERS = "indirection_buffers"
    KV_COPIES = "kv_copies"
    TRANSPOSED_WEIGHT = "transposed_weight"
    FIRST_INFERENCE_GROWS = "first_inference_grows"
    ORIGINAL_KEPT = "original_kept"
    STORED_TWICE = "stored_twice"
    ARENA_WASTE = "arena_waste"


class Certainty(StrEnum):
    """How sure the saving of a finding is."""

    EXACT = "exact"
    ESTIMATED = "estimated"
    POSSIBLE = "possible"


class Source(StrEnum):
    """How a figure came to be."""

    COUNTED = "counted"
    MEASURED = "measured"
    INFERRED = "inferred"
