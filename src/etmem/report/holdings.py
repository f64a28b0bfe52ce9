"""Tables of what is held: owners at the peaks, arenas, the largest blocks, delegates.

Delegate instances that have the same figures stand in one row: a language model has dozens of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from etmem.model.summary import Arena, ArenaUser, DelegateInfo, LargestBlock, Moment, OwnerBytes, Summary
from etmem.model.words import EXECUTORCH, Category
from etmem.report.names import Instance, category_name, owner_label, owner_name, parse_instance
from etmem.report.table import grid, wrap
from etmem.report.units import Scale, choose_scale, clean, index_ranges

NAME_LIMIT = 40
MAX_BLOCKS = 12
SMALL_BLOCKS = 0.0001
"""Share of the largest under which a block is left to the JSON."""


def peak_owner_lines(summary: Summary, scale: Scale, width: int) -> list[str]:
    """Every owner and category at the two peaks, host and profiler too; a method's instances are summed."""
    lines: list[str] = []
    header = ("owner", "category", "private", "file", "blocks")
    for at, peak in (("load", summary.peaks.load), ("inference", summary.peaks.inference)):
        if peak is not None and peak.moment.owners:
            lines += [*([""] if lines else []), f"LIVE AT THE PEAK OF {at}  {scale.unit}"]
            lines += grid(header, _moment_rows(peak.moment, scale), 2, width)
    return lines


def _moment_rows(moment: Moment, scale: Scale) -> list[tuple[str, ...]]:
    sums: dict[tuple[str, str | None, Category], list[int]] = {}
    instances: dict[tuple[str, str | None], list[int]] = {}
    for entry in moment.owners:
        method, index = _method_of(entry)
        instances.setdefault((entry.owner, method), []).extend([] if index is None else [index])
        for item in entry.categories:
            row = sums.setdefault((entry.owner, method, item.category), [0, 0, 0])
            for at, count in enumerate((item.private_bytes, item.file_bytes, item.blocks)):
                row[at] += count
    return [
        (
            _name(owner, method, instances[owner, method]),
            category_name(category),
            scale.number(private),
            scale.number(file),
            f"{blocks:,}",
        )
        for (owner, method, category), (private, file, blocks) in sums.items()
        if private or file
    ]


def owner_peak_lines(summary: Summary, scale: Scale, width: int) -> list[str]:
    """Each owner at its own peak, which need not be the program's."""
    rows: list[tuple[str, ...]] = []
    for at, peak in (("load", summary.peaks.load), ("inference", summary.peaks.inference)):
        alike: dict[tuple[str, str | None, int, int], list[int]] = {}
        for entry in peak.owner_peaks if peak else ():
            method, index = _method_of(entry)
            found = alike.setdefault((entry.owner, method, entry.private_bytes, entry.file_bytes), [])
            found.extend([] if index is None else [index])
        for (owner, method, private, file), indices in alike.items():
            each = " each" if len(indices) > 1 else ""
            rows.append((_name(owner, method, indices) + each, at, scale.number(private), scale.number(file)))
    header = ("owner", "in", "private", "file")
    return [f"EACH OWNER AT ITS OWN PEAK  {scale.unit}", *grid(header, rows, 2, width)] if rows else []


def _method_of(entry: OwnerBytes) -> tuple[str | None, int | None]:
    instance = parse_instance(entry.instance) if entry.instance else None
    return (instance.method, instance.index) if instance else (entry.instance, None)


def _name(owner: str, method: str | None, indices: Sequence[int]) -> str:
    name = owner_name(owner)
    if method is None:
        return name
    return clean(f"{method}/{name}", NAME_LIMIT) + (index_ranges(list(indices)) if indices else "")


def arena_lines(summary: Summary, scale: Scale, width: int) -> list[str]:
    """Given and used; where several ask one allocator, how much each asked for."""
    if not summary.arenas:
        return []
    own = choose_scale(max(arena.bytes for arena in summary.arenas), exact=scale.divisor == 1)
    rows = [_arena(arena, own) for arena in summary.arenas]
    header: tuple[str, ...] = ("arena", "method", "given", "used", "allocs", "resident")
    if not any(row[-1] for row in rows):
        rows, header = [row[:-1] for row in rows], header[:-1]
    lines = [f"ARENAS  {own.unit}, inside the blocks above", *grid(header, rows, 2, width)]
    for arena in summary.arenas:
        if len(arena.users) > 1:
            users = ", ".join(_user_bytes(user, own) for user in arena.users)
            lines += wrap(f"{_arena_name(arena)}: {users}", width, rest="  ")
    return lines


def _user_bytes(user: ArenaUser, scale: Scale) -> str:
    """Of a client's heap the most at once, by what it is for; of ExecuTorch's allocators all that was asked for."""
    if user.category is None:
        return f"{_user(user)} {scale.plain(user.bytes)}"
    return f"{_user(user)} {category_name(user.category)} {scale.plain(user.used_peak_bytes)}"


def _arena(arena: Arena, scale: Scale) -> tuple[str, ...]:
    used = "?" if arena.used_peak_bytes is None else scale.number(arena.used_peak_bytes)
    method = clean(arena.method, 24) if arena.method is not None else "all"
    resident = "" if arena.resident_bytes is None else scale.number(arena.resident_bytes)
    name = arena.name if arena.owner == EXECUTORCH else f"{owner_name(arena.owner)} {arena.name}"
    return clean(name, 32), method, scale.number(arena.bytes), used, f"{arena.allocations:,}", resident


def _arena_name(arena: Arena) -> str:
    return clean(f"{arena.name} of {arena.method}" if arena.method is not None else arena.name, NAME_LIMIT)


def _user(entry: ArenaUser | LargestBlock) -> str:
    return clean(entry.instance, NAME_LIMIT) if entry.instance else owner_name(entry.owner)


def largest_block_lines(summary: Summary, _scale: Scale, width: int) -> list[str]:
    """Blocks of equal size, owner and category together, in bytes: these are what one looks up in code."""
    lines: list[str] = []
    header = ("owner", "category", "allocated in", "count", "bytes each")
    for at in dict.fromkeys(block.at for block in summary.largest_blocks):
        blocks = [block for block in summary.largest_blocks if block.at == at]
        least = max(block.requested_bytes * block.count for block in blocks) * SMALL_BLOCKS
        rows = [_block(block) for block in blocks[:MAX_BLOCKS] if block.requested_bytes * block.count >= least]
        lines += [""] if lines else []
        lines += [f"LARGEST BLOCKS AT THE PEAK OF {clean(at, 16)}", *grid(header, rows, 3, width)]
    return lines


def _block(block: LargestBlock) -> tuple[str, ...]:
    phase = block.phase.value if block.phase is not None else "no phase"
    mark = " f" if block.file else "  "
    category = f"{category_name(block.category)}: {block.label}" if block.label else category_name(block.category)
    return _user(block), clean(category, NAME_LIMIT), phase, f"{block.count:,}", f"{block.requested_bytes:,}{mark}"


def delegate_lines(summary: Summary, scale: Scale, width: int) -> list[str]:
    """Sizes of each delegate; then, once per backend, when its blobs were released and who shares."""
    if not summary.delegates:
        return []
    alike: dict[tuple[str, ...], list[Instance]] = {}
    for delegate in summary.delegates:
        key = (delegate.method, delegate.backend, *_sizes(delegate, scale))
        alike.setdefault(key, []).append(Instance(delegate.method, delegate.instance))
    rows = [
        (_name(f"delegate:{backend}", method, [i.index for i in found]) + (" each" if len(found) > 1 else ""), *sizes)
        for (method, backend, *sizes), found in alike.items()
    ]
    header = ("delegate", "blob", "named", "init", "after", "first", "steady", "allocs")
    title = f"DELEGATES  {scale.unit}: peak of init, live after, growth in first execute, at rest"
    notes = (_notes(backend, summary.delegates) for backend in dict.fromkeys(d.backend for d in summary.delegates))
    return [title, *grid(header, rows, 1, width), *(line for note in notes for line in wrap(note, width, rest="  "))]


def _sizes(delegate: DelegateInfo, scale: Scale) -> tuple[str, ...]:
    sizes = (
        delegate.blob_bytes,
        delegate.named_data_bytes,
        delegate.init_peak_bytes,
        delegate.live_after_init_bytes,
        delegate.first_execute_growth_bytes,
        delegate.steady_bytes,
    )
    return *(scale.number(size) for size in sizes), f"{delegate.execute_allocations:,}"


def _notes(backend: str, delegates: Iterable[DelegateInfo]) -> str:
    mine = tuple(delegate for delegate in delegates if delegate.backend == backend)
    label = owner_label(f"delegate:{backend}", mine, NAME_LIMIT)
    when = ("never" if d.blob_released == "never" else f"at {d.blob_released}" for d in mine)
    released = ", ".join(dict.fromkeys(when))
    sharing = sum(1 for d in mine if d.shared_with)
    note = f"{label}: blob released {clean(released, 32)}"
    return f"{note}; {sharing} share a workspace or weight cache" if sharing else note
