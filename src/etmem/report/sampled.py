"""An imported heap profile as text, JSON and collapsed stacks. Every form says that it is sampled."""

from __future__ import annotations

import json

from etmem.model.codec import to_data
from etmem.model.sampled import SampledBytes, SampledCategory, SampledOwner, SampledProfile
from etmem.report.collapsed import frame
from etmem.report.demangle import demangle
from etmem.report.names import category_name, owner_name
from etmem.report.remarks import issues_of
from etmem.report.table import MIN_WIDTH, grid, wrap
from etmem.report.units import Scale, choose_scale, clean

_STACKS = 10
_FRAMES = 12
_BUILD_ID = 12


def render(profile: SampledProfile, *, width: int = MIN_WIDTH, full: bool = False, bytes_exact: bool = False) -> str:
    """ASCII lines of at most ``width``; ``full`` adds modules, and stacks with their frames."""
    scale = choose_scale(profile.total.live_bytes, exact=bytes_exact)
    sections = [_head(profile, scale, width), _owners(profile, scale, width)]
    if full:
        sections += [_modules(profile, width), _stacks(profile, scale, width)]
    sections += [issues_of(profile.issues, width, every=full), _limits(profile, width)]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def to_json(profile: SampledProfile) -> str:
    """``etmem.sampled/1``; ``schema`` and ``sampled`` come first."""
    data = to_data(profile)
    ordered = {"schema": data.pop("schema"), "sampled": data.pop("sampled"), **data}
    return json.dumps(ordered, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def collapsed(profile: SampledProfile) -> str:
    """Live bytes by owner, category and call stack, for flamegraph.pl; the root of all says that they are sampled."""
    sums: dict[str, int] = {}
    for row in profile.stacks:
        if row.figures.live_bytes > 0:
            path = ("sampled", owner_name(row.owner), category_name(row.category), *map(demangle, row.frames))
            line = ";".join(map(frame, path))
            sums[line] = sums.get(line, 0) + row.figures.live_bytes
    return "".join(f"{line} {size}\n" for line, size in sorted(sums.items()))


def _head(profile: SampledProfile, scale: Scale, width: int) -> list[str]:
    every = profile.interval_bytes
    often = "every allocation" if every == 1 else f"one sample for {every:,} B" if every else "interval not told"
    parts = [clean(profile.file, 40), f"{profile.format} heap profile", clean(profile.process, 32), f"SAMPLED, {often}"]
    first = wrap("  ".join(part for part in parts if part), width, rest="  ")
    total = profile.total
    live = f"LIVE {scale.with_unit(total.live_bytes)} in about {total.live_blocks:,} blocks {profile.moment}"
    return [*first, *wrap(live, width, rest="  ")]


def _owners(profile: SampledProfile, scale: Scale, width: int) -> list[str]:
    rows = []
    for owner in profile.owners:
        rows.append((_owner_label(owner), "", *_figures(owner.figures, scale)))
        rows += [
            (f"  {category_name(part.category)}", _phase(part), *_figures(part.figures, scale))
            for part in owner.categories
        ]
    header = (scale.unit, "allocated in", "live", "blocks", "allocated since", "blocks")
    return grid(header, rows, 2, width) if rows else []


def _owner_label(owner: SampledOwner) -> str:
    return clean(owner_name(owner.owner), 40)


def _phase(part: SampledCategory) -> str:
    return part.phase.value.replace("_", " ") if part.phase else ""


def _figures(figures: SampledBytes, scale: Scale) -> tuple[str, ...]:
    allocated = (scale.number(figures.allocated_bytes), f"{figures.allocated_blocks:,}")
    return scale.number(figures.live_bytes), f"{figures.live_blocks:,}", *allocated


def _modules(profile: SampledProfile, width: int) -> list[str]:
    rows = []
    for module in profile.modules:
        names = (clean(module.path, 60), clean(module.symbols, 40), module.build_id[:_BUILD_ID])
        rows.append((*names, f"{module.frames:,}", f"{module.unnamed:,}"))
    return ["MODULES", *grid(("module", "symbols", "build id", "frames", "unnamed"), rows, 3, width)] if rows else []


def _stacks(profile: SampledProfile, scale: Scale, width: int) -> list[str]:
    lines = ["LARGEST CALL STACKS, innermost first"]
    for row in profile.stacks[:_STACKS]:
        what = f"{owner_name(row.owner)} {category_name(row.category)}{f' {row.operator}' if row.operator else ''}"
        lines += wrap(f"{scale.with_unit(row.figures.live_bytes)}  {clean(what, 100)}", width, rest="  ")
        names = row.frames[::-1]
        lines += [f"    {clean(demangle(name), width - 4)}" for name in names[:_FRAMES]]
        lines += [f"    and {len(names) - _FRAMES} more"] if len(names) > _FRAMES else []
    return lines if profile.stacks else []


def _limits(profile: SampledProfile, width: int) -> list[str]:
    text = (
        "Sampled by another profiler: heap blocks alone, at one moment. It tells no peak of load or of inference, no "
        "file mappings, no RSS, no delegate instances; not which blocks are inputs and outputs; and of a function that "
        "allocates both, not what is weights and what is metadata."
    )
    return wrap(text, width) if profile.total.live_blocks or profile.total.allocated_blocks else []
