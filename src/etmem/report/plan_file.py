"""What lies in the arenas, and what the file holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from etmem.planning.model import Part
from etmem.report.table import grid
from etmem.report.units import clean, file_name, file_size, plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from etmem.planning.model import ArenaMap, MethodPlan, Placed, ProgramPlan
    from etmem.report.units import Scale

_KINDS = ("input", "output", "mutable", "temporary")
_SHOWN = 3
_FIRST_ARENAS = 4


def arena_lines(plan: ProgramPlan, scale: Scale, width: int, *, full: bool) -> list[str]:
    """Each planned buffer: its size, its peak, what is live there, and how much of it no plan could save."""
    arenas = [(method, arena) for method in plan.methods for arena in method.arenas if arena.bytes]
    if not arenas:
        return []
    lines = ["ARENAS"]
    shown = arenas if full else arenas[:_FIRST_ARENAS]
    for method, arena in shown:
        lines += _arena(method, arena, scale, width, full=full)
    if len(shown) < len(arenas):
        lines.append(f"and {plural(len(arenas) - len(shown), 'arena')} more: --full")
    if plan.shared_arena_saving_bytes:
        saved = scale.with_unit(plan.shared_arena_saving_bytes)
        lines.append(f"methods that share their arenas (share_memory_arenas) save {saved}")
    return lines


def _arena(method: MethodPlan, arena: ArenaMap, scale: Scale, width: int, *, full: bool) -> list[str]:
    name = f"{clean(method.name, 24)} planned[{arena.mem_id}]"
    where = (
        arena.peak_instruction if arena.peak < 0 else f"instruction {arena.peak}, {clean(arena.peak_instruction, 36)}"
    )
    live = scale.plain(arena.live_peak_bytes)
    lines = [
        f"{name}  {scale.with_unit(arena.bytes)}, at most {live} live (waste {scale.plain(arena.waste_bytes)})",
        f"  peak at {where}",
    ]
    kinds = [f"{kind} {scale.plain(arena.bytes_of(kind))}" for kind in _KINDS if arena.bytes_of(kind)]
    if kinds:
        lines.append(f"  placed over time: {', '.join(kinds)}")
    if arena.break_bytes:
        lines.append(f"  graph breaks put {scale.plain(arena.break_bytes)} of it there")
    if arena.bytes_of("mutable") and method.mutable_bytes:
        share = 100 * arena.bytes_of("mutable") / arena.bytes
        copies = f", copies of them {scale.plain(method.mutable_copies_bytes)}" if method.mutable_copies_bytes else ""
        lines.append(f"  mutable buffers (KV caches) take {share:.0f} %{copies}")
    if method.dynamic_bound_bytes:
        used = (
            f", {scale.plain(method.dynamic_used_bytes)} at the shape given"
            if method.dynamic_used_bytes is not None
            else ""
        )
        lines.append(f"  dynamic: {scale.plain(method.dynamic_bound_bytes)} at the upper bound{used}")
    places = arena.live_at_peak
    lines += grid(
        ("  live at the peak", "kind", "offset", "bytes", "instructions"),
        [_place(place) for place in (places if full else places[:_SHOWN])],
        2,
        width,
    )
    if full:
        lines += grid(
            ("  all", "kind", "offset", "bytes", "instructions"), [_place(place) for place in arena.placed], 2, width
        )
    elif len(places) > _SHOWN:
        lines.append(f"  and {len(places) - _SHOWN} more")
    return lines


def _place(place: Placed) -> tuple[str, ...]:
    more = f" (+{place.tensors - 1} on it)" if place.tensors > 1 else ""
    return (
        f"  {clean(place.label, 48)}{more}",
        place.kind,
        f"{place.offset:,}",
        f"{place.bytes:,}",
        f"{place.first}..{place.last}",
    )


def content_lines(plan: ProgramPlan, width: int, *, full: bool, exact: bool) -> list[str]:
    lines: list[str] = []
    for file in plan.contents:
        lines.append(f"FILE {file_name(file.path)}  {file_size(file.file_bytes, exact=exact)}")
        rows = [
            (
                f"  {part.kind.replace('_', ' ')}",
                clean(part.name, 32),
                f"{part.count:,}",
                f"{part.bytes:,}",
                f"{len(part.used_by)} users"
                if len(part.used_by) > 1
                else clean(part.used_by[0], 30)
                if part.used_by
                else "",
            )
            for part in _merged(file.parts, full=full)
        ]
        lines += grid(("  part", "what", "count", "bytes", "of"), rows, 2, width)
        shared = [part for part in file.named_data if len(part.used_by) > 1]
        if shared:
            size = sum(part.bytes for part in shared)
            lines.append(f"  shared: {plural(len(shared), 'tensor')} of named data, {file_size(size, exact=exact)}, "
                         "loaded by several delegates")  # fmt: skip
    return lines


def _merged(parts: Sequence[Part], *, full: bool) -> list[Part]:
    """Blobs of one backend as one line, unless all is asked for."""
    if full:
        return list(parts)
    found: dict[tuple[str, str], Part] = {}
    for part in parts:
        held = found.get((part.kind, part.name))
        found[part.kind, part.name] = part if held is None else Part(
            part.kind, part.name, held.bytes + part.bytes, held.count + part.count, (*held.used_by, *part.used_by)
        )  # fmt: skip
    return list(found.values())
