"""The estimate: a run of the program on paper, as ExecuTorch's loader and runtime would do it.

All methods are loaded, in the file's order, then each runs; that is what ``etmem profile`` does too.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
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

_CACHE_ALIGNMENT = 64
"""The weight cache aligns each block by hand."""
_NOT_SHARED, _BY_METHOD = "0", "1"


@dataclass(frozen=True)
class Instance:
    """One delegate of one method, and what its description says of its blob."""

    method: str
    index: int
    backend: str
    blob_offset: int
    blob_bytes: int
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
    cached: set[tuple[str, str]] = field(default_factory=set)
    started: set[str] = field(default_factory=set)
    workspaces: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Which delegates share it -> (number in the ledger, bytes)."""


def forecasts(run: Run) -> tuple[Forecast, ...]:
    """``load`` and ``inference`` at their peaks, and ``steady``."""
    ledger = run.ledger
    _load_program(run)
    for plan in run.plans:
        _load_method(run, plan)
    load = ledger.peak("load")
    ledger.begin()
    for plan in run.plans:
        for instance in run.instances.get(plan.name, ()):
            _execute(run, instance)
    return load, ledger.peak("inference"), ledger.now("steady")


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
    return -1


def _init(run: Run, instance: Instance) -> None:
    ledger, found = run.ledger, instance.estimate
    blob = run.loader.piece(
        instance.owner, instance.label, Category.ORIGINAL_WEIGHTS, instance.blob_offset, instance.blob_bytes
    )
    if found is None:
        known = Entry(
            blob.owner, blob.instance, blob.category, blob.private_bytes, blob.file_bytes, Sureness.BOUNDED, open=True
        )
        ledger.allocate(known, instance.method)
        return
    gone = [] if found.blob_kept else [ledger.allocate(blob, instance.method)]
    if found.blob_kept:
        ledger.allocate(blob, instance.method)
    for use in found.named_data:
        number = _load_named(run, use.key, instance.owner, instance.label, Category.ORIGINAL_WEIGHTS, instance.method)
        if not use.kept or run.options.get("weight_cache_enabled") == "true":
            gone.append(number)
    blocks = [block for block in found.blocks if block.life in (Life.INIT, Life.LOADED)]
    if instance.backend not in run.started:
        run.started.add(instance.backend)
        blocks += found.once
    for entry, life in _entries(run, instance, blocks):
        number = ledger.allocate(entry, instance.method)
        if life is Life.INIT:
            gone.append(number)
    ledger.free(gone)


def _execute(run: Run, instance: Instance) -> None:
    ledger, found = run.ledger, instance.estimate
    if found is None:
        return
    gone = []
    blocks = [block for block in found.blocks if block.life in (Life.EXECUTE, Life.STEADY)]
    for entry, life in _entries(run, instance, blocks):
        number = ledger.allocate(entry, instance.method)
        if life is Life.EXECUTE:
            gone.append(number)
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
        entry = Entry(instance.owner, label, Category.WORKSPACE, block.bytes, sure=block.sure)
        run.workspaces[shared] = (run.ledger.allocate(entry, instance.method), block.bytes)
        run.ledger.free([number])


def _entries(run: Run, instance: Instance, blocks: Sequence[BlobBlock]) -> Iterator[tuple[Entry, Life]]:
    """Blocks of one category, life and sureness as one entry; what the weight cache holds already as none."""
    caching = run.options.get("weight_cache_enabled") == "true"
    sums: dict[tuple[Category, Life, Sureness, bool], list[int]] = defaultdict(lambda: [0, 0, 0])
    for block in blocks:
        cached = caching and block.key is not None
        extra = 0
        if cached:
            name = (instance.backend, block.key or "")
            if name in run.cached:
                continue
            run.cached.add(name)
            extra = _CACHE_ALIGNMENT
        group = sums[block.category, block.life, block.sure, cached]
        group[0] += block.total_bytes + extra
        group[1] += (block.bytes if block.low is None else block.low) * block.count + extra
        group[2] += (block.bytes if block.high is None else block.high) * block.count + extra
    for (category, life, sure, cached), (size, low, high) in sums.items():
        label = None if cached else instance.label
        yield Entry(instance.owner, label, category, size, sure=sure, low=low, high=high), life
