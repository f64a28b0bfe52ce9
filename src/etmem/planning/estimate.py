"""The estimate: a run of the program on paper, as ExecuTorch's loader and runtime would do it.

All methods are loaded, in the file's order, then each runs; that is what ``etmem profile`` does too.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from etmem.delegates.estimating import BlobBlock, BlobEstimate, Life, Sureness
from etmem.model.words import EXECUTORCH, Category, delegate
from etmem.planning.contents import segment_of
from etmem.planning.ledger import Entry, Ledger
from etmem.planning.loading import Loader
from etmem.planning.pools import Asked, method_bytes, method_requests

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from etmem.planning.model import Forecast
    from etmem.program.model import ExternalData, Plan, Program

_CACHE_ALIGNMENT, _CACHE_NODE = 64, 48
"""The weight cache aligns each block by hand, and keeps it in a map."""
_CACHE_NAMES = 800
"""Names and offsets of one block."""
_CACHE_BUCKETS = (13, 29, 59, 127, 257, 541, 1109, 2357, 5087, 10273, 20753)
"""How the map grows."""
_NOT_SHARED, _BY_METHOD = "0", "1"
_IN_EXECUTE = (Life.FIRST, Life.EXECUTE, Life.STEADY)


@dataclass(frozen=True)
class Instance:
    """One delegate of one method, and what its description says of its blob."""

    method: str
    index: int
    backend: str
    blob_offset: int
    blob_bytes: int
    inline: bool
    """The blob lies in the flatbuffer and is there with it."""
    estimate: BlobEstimate | None
    """None where nothing estimates it: its blob is a lower bound."""
    note: str = ""
    """Why there is no estimate, or why it is not exact."""

    @property
    def label(self) -> str:
        return f"{self.method}/{self.backend}[{self.index}]"

    @property
    def owner(self) -> str:
        return delegate(self.backend)


@dataclass(frozen=True)
class Run:
    """What is run, and how."""

    program: Program
    data: tuple[ExternalData, ...]
    plans: tuple[Plan, ...]
    instances: Mapping[str, Sequence[Instance]]
    """By method, in the order of its delegate table."""
    loader: Loader
    options: Mapping[str, str]
    pointer_bytes: int
    ledger: Ledger = field(default_factory=Ledger)
    held: set[tuple[str, str]] = field(default_factory=set)
    """(backend, name) of what the weight cache holds, and of what is made once in a process."""
    cache: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Backend -> (number of the weight cache's table in the ledger, blocks in it)."""
    started: set[str] = field(default_factory=set)
    workspaces: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Which delegates share it -> (number in the ledger, bytes)."""


def forecasts(run: Run) -> tuple[Forecast, ...]:
    """``load``, ``inference`` and ``later`` at their peaks, and ``steady``."""
    ledger = run.ledger
    _load_program(run)
    for plan in run.plans:
        _load_method(run, plan)
    load = ledger.peak("load")
    ledger.begin()
    _inference(run, first=True)
    inference = ledger.peak("inference")
    ledger.begin()
    _inference(run, first=False)
    return load, inference, ledger.peak("later"), ledger.now("steady")


def _inference(run: Run, *, first: bool) -> None:
    for plan in run.plans:
        for instance in run.instances.get(plan.name, ()):
            _execute(run, instance, first=first)


def _load_program(run: Run) -> None:
    program, loader = run.program, run.loader
    if loader.mode == "buffer":
        _hold_buffer(run)
    run.ledger.allocate(loader.piece(EXECUTORCH, None, Category.PROGRAM, 0, program.header.program_bytes))
    for data in run.data:
        run.ledger.allocate(loader.piece(EXECUTORCH, None, Category.PROGRAM, 0, data.header.program_bytes))
    if program.constant_segment is not None:
        segment = program.segments[program.constant_segment.segment]
        run.ledger.allocate(loader.piece(EXECUTORCH, None, Category.CONSTANTS, segment.file_offset, segment.bytes))


def _hold_buffer(run: Run) -> None:
    """The caller's buffer, which nothing can free a part of: it counts as what most of it is."""
    backends = dict.fromkeys(instance.backend for every in run.instances.values() for instance in every)
    owner, category = EXECUTORCH, Category.CONSTANTS
    if backends:
        owner, category = delegate(next(iter(backends))), Category.ORIGINAL_WEIGHTS
    size = run.program.file_bytes
    run.ledger.allocate(Entry(owner, None, category, size, sure=Sureness.COMPUTED))


def _load_method(run: Run, plan: Plan) -> None:
    ledger = run.ledger
    for _, size in plan.planned:
        ledger.allocate(Entry(EXECUTORCH, None, Category.PLANNED_MEMORY, size), plan.name)
    requests = method_requests(
        run.program, plan, run.pointer_bytes, temp_pool=False, own_temp=False, external_data=bool(run.data)
    )
    sure = Sureness.COMPUTED if requests.unknown_backends else Sureness.EXACT

    def take(asked: Sequence[Asked]) -> None:
        ledger.allocate(
            Entry(EXECUTORCH, None, Category.METHOD_ALLOCATOR, sum(method_bytes(asked)), sure=sure), plan.name
        )

    for key in _external_constants(plan):
        _load_named(run, key, EXECUTORCH, None, Category.CONSTANTS, plan.name)
    take(requests.values)
    for instance, asked in zip(run.instances.get(plan.name, ()), requests.delegates, strict=True):
        take(asked)
        _init(run, instance)
    take(requests.instructions)
    blocks = _list_of_blocks(len(method_bytes(tuple(requests.entries))))
    ledger.allocate(Entry(EXECUTORCH, None, Category.METADATA, blocks, sure=Sureness.COMPUTED), plan.name)


def _list_of_blocks(count: int) -> int:
    """A malloc allocator remembers its blocks in a vector, which doubles."""
    return 8 * (1 << max(0, count - 1).bit_length()) if count else 0


def _external_constants(plan: Plan) -> Iterator[str]:
    names = [
        tensor.name
        for value in range(len(plan.values))
        if (tensor := plan.tensor(value)) is not None and tensor.external and tensor.allocation is None
    ]
    yield from dict.fromkeys(name for name in names if name)


def _load_named(
    run: Run, key: str, owner: str, label: str | None, category: Category, method: str
) -> int:  # fmt: skip
    files: tuple[Program | ExternalData, ...] = (*run.data, run.program)
    for file in files:
        segment = segment_of(file, key)
        if segment is not None:
            entry = run.loader.piece(owner, label, category, segment.file_offset, segment.bytes)
            return run.ledger.allocate(entry, method)
    missing = Entry(owner, label, category, 0, sure=Sureness.BOUNDED, open=True)
    return run.ledger.allocate(missing, method)


def _init(run: Run, instance: Instance) -> None:
    ledger, found = run.ledger, instance.estimate
    size = 0 if instance.inline else instance.blob_bytes
    blob = run.loader.piece(instance.owner, instance.label, Category.ORIGINAL_WEIGHTS, instance.blob_offset, size)
    if found is None:
        ledger.allocate(replace(blob, sure=Sureness.BOUNDED, open=True), instance.method)
        return
    number = ledger.allocate(blob, instance.method)
    gone = [] if found.blob_kept else [number]
    for use in found.named_data:
        number = _load_named(run, use.key, instance.owner, instance.label, Category.ORIGINAL_WEIGHTS, instance.method)
        if not use.kept or run.options.get("weight_cache_enabled") == "true":
            gone.append(number)
    blocks = [block for block in found.blocks if block.life not in _IN_EXECUTE]
    if instance.backend not in run.started:
        run.started.add(instance.backend)
        blocks = [*found.once, *blocks]
    brief = -1
    for block in blocks:
        number = _allocate(run, instance, block)
        if number < 0:
            continue
        ledger.free([brief])
        brief = number if block.life is Life.CREATE else -1
        if block.life is Life.MOMENT:
            ledger.free([number])
        elif block.life is Life.INIT:
            gone.append(number)
    ledger.free([brief, *gone])


def _execute(run: Run, instance: Instance, *, first: bool) -> None:
    ledger, found = run.ledger, instance.estimate
    if found is None:
        return
    gone = []
    for block in found.blocks:
        if block.life is Life.EXECUTE or (first and block.life in (Life.FIRST, Life.STEADY)):
            number = _allocate(run, instance, block)
            if block.life is not Life.STEADY:
                gone.append(number)
    if found.temp is not None:
        scratch = Entry(EXECUTORCH, None, Category.TEMP_ALLOCATOR, found.temp[0])
        gone.append(ledger.allocate(scratch, instance.method))
    if found.workspace is not None:
        _grow_workspace(run, instance, found.workspace)
    ledger.free(gone)


def _grow_workspace(run: Run, instance: Instance, block: BlobBlock) -> None:
    """One that has to grow is allocated anew before the old one goes."""
    mode = run.options.get("workspace_sharing_mode", "2")
    shared = instance.label if mode == _NOT_SHARED else instance.method if mode == _BY_METHOD else "process"
    number, size = run.workspaces.get(shared, (-1, 0))
    if block.bytes > size:
        label = instance.label if mode == _NOT_SHARED else None
        entry = Entry(
            instance.owner, label, Category.WORKSPACE, block.bytes, sure=block.sure, low=block.low, high=block.high
        )
        run.workspaces[shared] = (run.ledger.allocate(entry, instance.method), block.bytes)
        run.ledger.free([number])


def _allocate(run: Run, instance: Instance, block: BlobBlock) -> int:
    """Its number in the ledger; -1 for what the weight cache holds already, or what is made once only."""
    cached = block.key is not None and run.options.get("weight_cache_enabled") == "true"
    name = block.key if cached else block.once
    if name is not None:
        if (instance.backend, name) in run.held:
            return -1
        run.held.add((instance.backend, name))
    extra = _CACHE_ALIGNMENT + _CACHE_NODE if cached else 0
    entry = Entry(
        instance.owner, None if cached else instance.label, block.category, block.total_bytes + extra, sure=block.sure,
        low=None if block.low is None else block.low * block.count + extra,
        high=None if block.high is None else block.high * block.count + extra,
    )  # fmt: skip
    if cached:
        _count_in_cache(run, instance)
    return run.ledger.allocate(entry, instance.method)


def _count_in_cache(run: Run, instance: Instance) -> None:
    """What the weight cache needs itself for one more block."""
    names = Entry(instance.owner, None, Category.METADATA, _CACHE_NAMES, sure=Sureness.COMPUTED)
    run.ledger.allocate(names, instance.method)
    number, count = run.cache.get(instance.backend, (-1, 0))
    steps = (0, *_CACHE_BUCKETS)
    if count in steps[:-1]:
        table = Entry(instance.owner, None, Category.PACKED_WEIGHTS, 8 * steps[steps.index(count) + 1])
        fresh = run.ledger.allocate(table, instance.method)
        run.ledger.free([number])
        number = fresh
    run.cache[instance.backend] = number, count + 1
