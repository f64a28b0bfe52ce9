"""``plan(path)``: reads the files and puts the plan together."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from etmem.delegates import descriptions
from etmem.delegates.estimating import BlobEstimate, CannotEstimate, Machine, Sureness, load
from etmem.model.errors import UsageError
from etmem.model.summary import InputSpec
from etmem.planning.arenas import arena_maps, instruction_names
from etmem.planning.contents import contents, data_contents
from etmem.planning.estimate import Instance, Run, forecasts
from etmem.planning.external import check_data, external_names, missing_note
from etmem.planning.findings import findings
from etmem.planning.loading import Loader
from etmem.planning.model import DelegateUse, MethodPlan, ProgramPlan
from etmem.planning.options import PlanOptions
from etmem.planning.pools import pool_sizes
from etmem.planning.targets import PlanTarget, plan_target
from etmem.planning.verdict import verdicts
from etmem.program import KernelCall, inputs, is_constant_method, outputs, read_data, require_plan
from etmem.program.bounds import dynamic_bound
from etmem.program.copies import buffer_copies
from etmem.program.reader import opened, sampled

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping, Sequence

    from etmem.delegates import Description
    from etmem.program import ExternalData, Plan, Program
    from etmem.program.model import Delegate


def plan(path: str | os.PathLike[str], options: PlanOptions | None = None) -> ProgramPlan:
    """What a ``.pte`` (or the program in a ``.bpte``) will need. Raises ProgramError and UsageError."""
    options = options or PlanOptions()
    target = plan_target(options.target, options.cpu)
    data = tuple(read_data(file) for file in options.data)
    with opened(path) as (program, view), sampled(path) as read:
        plans = _plans(program, options)
        instances = {
            found.name: tuple(_instances(program, found, view, target, options)) for found in plans
        }  # fmt: skip
        wanted = external_names(program, plans, instances)
        known = all(found.estimate is not None for every in instances.values() for found in every)
        check_data(wanted, data, all_known=known)
        methods = tuple(_method(program, data, found, instances[found.name], options) for found in plans)
        remarks = findings(program, read, plans, methods, instances, options.options)
    estimate = () if target.microcontroller else forecasts(_run(program, data, plans, instances, target, options))
    loads = _loads(instances)
    files = (contents(program, loads), *(data_contents(file, loads) for file in data))
    return ProgramPlan(
        target=target,
        loader="in place" if target.microcontroller else options.loader,
        preset=options.preset,
        options=options.options,
        contents=files,
        methods=methods,
        constant_methods=tuple(found.name for found in program.plans if is_constant_method(found)),
        shared_arena_saving_bytes=_shared(methods),
        estimate=estimate,
        verdicts=verdicts(options, files, methods, estimate),
        findings=remarks,
        notes=(*missing_note(wanted, data), *_notes(target, methods)),
    )


def _plans(program: Program, options: PlanOptions) -> tuple[Plan, ...]:
    if options.methods:
        return tuple(require_plan(program, name) for name in options.methods)
    return tuple(found for found in program.plans if not is_constant_method(found))


def _instances(
    program: Program, found: Plan, view: memoryview, target: PlanTarget, options: PlanOptions
) -> Iterator[Instance]:
    machine = Machine(target.isa, target.cpu, target.pointer_bytes, options.thread_count, None)
    known = descriptions(options.describe)
    for index, entry in enumerate(found.delegates):
        place = program.inline_delegates[entry.index] if entry.inline else program.segments[entry.index]
        blob = view[place.file_offset : place.file_offset + place.bytes]
        estimate, note = _estimate(known.get(entry.backend), entry, blob, machine, options.options)
        where = (place.file_offset, place.bytes, entry.inline)
        yield Instance(found.name, index, entry.backend, *where, estimate, note)


def _estimate(
    description: Description | None,
    entry: Delegate,
    blob: memoryview,
    machine: Machine,
    options: Mapping[str, str],
) -> tuple[BlobEstimate | None, str]:
    """(what the delegate's description says of its blob, why it says nothing or is not exact)."""
    if description is None or description.estimate is None:
        return None, f"nothing estimates {entry.backend}: its blob is a lower bound"
    try:
        found = load(description.estimate)(blob, machine, options)
    except CannotEstimate as reason:
        return None, f"{entry.backend}: {reason}"
    return found, "; ".join(found.notes)


def _method(
    program: Program, data: Sequence[ExternalData], found: Plan, instances: Sequence[Instance], options: PlanOptions
) -> MethodPlan:
    specs = tuple(_inputs(program, found, options))
    bound, copies = dynamic_bound(found), buffer_copies(found)
    share = bound.used_share({spec.index: spec.shape for spec in specs if not spec.upper_bound}) if bound else None
    caller = [info for info in (*inputs(program, found.name), *outputs(program, found.name)) if not info.planned]
    return MethodPlan(
        name=found.name,
        inputs=specs,
        instructions=instruction_names(found),
        operators=len(found.operators),
        kernel_calls=sum(isinstance(entry, KernelCall) for chain in found.chains for entry in chain.instructions),
        delegates=tuple(_use(program, data, instance) for instance in instances),
        arenas=arena_maps(found),
        pools=tuple(
            pool_sizes(program, found, width, temp_pool=temp, executes=_executes(instances))
            for width in (4, 8)
            for temp in (True, False)
        ),
        dynamic_bound_bytes=bound.bound_bytes if bound else 0,
        dynamic_used_bytes=None if bound is None or share is None else int(bound.bound_bytes * share),
        mutable_bytes=copies.buffer_bytes if copies else 0,
        mutable_copies_bytes=copies.copied_bytes - copies.buffer_bytes if copies else 0,
        caller_bytes=sum(info.nbytes for info in caller),
    )  # fmt: skip


def _executes(instances: Sequence[Instance]) -> tuple[tuple[int, int], ...]:
    """What the delegates ask of the temp pool when they run."""
    return tuple(
        instance.estimate.temp
        for instance in instances
        if instance.estimate is not None and instance.estimate.temp is not None
    )


def _use(program: Program, data: Sequence[ExternalData], instance: Instance) -> DelegateUse:
    keys = {use.key for use in instance.estimate.named_data} if instance.estimate else set()
    files: tuple[Program | ExternalData, ...] = (program, *data)
    named = [file.segments[entry.segment].bytes for file in files for entry in file.named_data if entry.key in keys]
    sure = Sureness.BOUNDED
    if instance.estimate is not None:
        blocks = instance.estimate.blocks
        sure = max((block.sure for block in blocks), key=lambda sure: sure.rank, default=Sureness.EXACT)
    return DelegateUse(instance.backend, instance.index, instance.blob_bytes, sum(named), sure, instance.note)


def _inputs(program: Program, found: Plan, options: PlanOptions) -> Iterator[InputSpec]:
    for info in inputs(program, found.name):
        if info.dtype is None:
            continue
        given = options.shapes.get((found.name, info.index), options.shapes.get((None, info.index)))
        if given is not None:
            _check_shape(found.name, info.index, given, info.shape, dynamic=info.upper_bound)
        bound = info.upper_bound and given is None
        yield InputSpec(found.name, info.index, info.dtype.name, info.shape if given is None else given, bound)


def _check_shape(
    method: str, index: int, given: tuple[int, ...], bound: tuple[int, ...], *, dynamic: bool
) -> None:  # fmt: skip
    fits = len(given) == len(bound) and all(size <= most for size, most in zip(given, bound, strict=True))
    if not fits or (not dynamic and given != bound):
        limit = "at most " if dynamic else ""
        raise UsageError(
            f"input {index} of {method} cannot have shape {'x'.join(map(str, given))}",
            f"the program says {limit}{'x'.join(map(str, bound))}",
        )


def _run(
    program: Program,
    data: tuple[ExternalData, ...],
    plans: tuple[Plan, ...],
    instances: Mapping[str, Sequence[Instance]],
    target: PlanTarget,
    options: PlanOptions,
) -> Run:
    return Run(program, data, plans, instances, Loader(options.loader), options.options, target.pointer_bytes)


def _loads(instances: Mapping[str, Sequence[Instance]]) -> dict[str, tuple[str, ...]]:
    users: dict[str, list[str]] = defaultdict(list)
    for every in instances.values():
        for instance in every:
            for use in instance.estimate.named_data if instance.estimate else ():
                users[use.key].append(instance.label)
    return {key: tuple(dict.fromkeys(labels)) for key, labels in users.items()}


def _shared(methods: Sequence[MethodPlan]) -> int:
    """Planned buffers of one mem_id are as large as the largest method's where methods share them."""
    sizes: dict[int, list[int]] = defaultdict(list)
    for method in methods:
        for arena in method.arenas:
            sizes[arena.mem_id].append(arena.bytes)
    return sum(sum(each) - max(each) for each in sizes.values())


def _notes(target: PlanTarget, methods: Sequence[MethodPlan]) -> Iterator[str]:
    yield from dict.fromkeys(use.note for method in methods for use in method.delegates if use.note)
    if target.microcontroller:
        yield "not told by the file: stack, kernels' own scratch, log buffers"
    else:
        yield "not told by the file: kernels' own scratch, the process itself, libraries"
