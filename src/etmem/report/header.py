"""The report's head: which program, run how, on what; and the two peaks."""

from __future__ import annotations

from etmem.model.summary import InputSpec, OwnerBytes, Peak, Phase, Summary, Target
from etmem.model.words import is_delegate
from etmem.report.names import owner_name, phase_name
from etmem.report.table import join_parts
from etmem.report.units import Scale, clean, dtype, file_name, file_size, ratio, shorten

DEFAULT_LOADER = "mmap"
MAX_METHODS = 3


def header_lines(summary: Summary, width: int, *, exact: bool) -> list[str]:
    """Program, methods with the inputs used, delegates, target; then what was not left at its default."""
    left = [*_programs(summary, exact), *_methods(summary.target.inputs, summary), *_delegates(summary)]
    target = _machine(summary.target, emulated=bool(summary.environment.emulator))
    loader = clean(summary.target.loader, 12)
    full = ", ".join(filter(None, (target, loader)))
    for tail in (full, target) if loader == DEFAULT_LOADER else (full,):
        for gap in ("   ", "  "):
            line = "  ".join(left) + gap + tail
            if len(line) <= width:
                return [line, *_options(summary, width), *_constants(summary, width)]
    lines = join_parts([*left, full], width)
    return [*lines, *_options(summary, width), *_constants(summary, width)]


def _programs(summary: Summary, exact: bool) -> list[str]:
    if not summary.programs:
        command = summary.environment.command
        return [clean(" ".join(command), 40) if command else "(no program)"]
    if len(summary.programs) > 2:
        total = sum(p.file_bytes or 0 for p in summary.programs)
        return [f"{len(summary.programs)} programs", file_size(total, exact=exact)]
    parts: list[str] = []
    for program in summary.programs:
        parts.append(file_name(program.path, 32))
        if program.file_bytes is not None:
            parts.append(file_size(program.file_bytes, exact=exact))
    return parts


def _methods(inputs: tuple[InputSpec, ...], summary: Summary) -> list[str]:
    by_method: dict[str, list[InputSpec]] = {}
    for spec in inputs:
        by_method.setdefault(spec.method, []).append(spec)
    for phase in summary.phases:
        if phase.method is not None:
            by_method.setdefault(phase.method, [])
    if len(by_method) > MAX_METHODS:
        return [f"{len(by_method)} methods"]
    return [shorten(" ".join([clean(method, 20), *_shapes(specs)]), 60) for method, specs in by_method.items()]


def _shapes(specs: list[InputSpec]) -> list[str]:
    """``f32[1,2048]`` per input; the shapes one input had in turn stand together: ``f32[1,64],[1,8]``."""
    by_index: dict[int, list[InputSpec]] = {}
    for spec in specs:
        by_index.setdefault(spec.index, []).append(spec)
    texts: list[str] = []
    for turns in by_index.values():
        shapes = dict.fromkeys("[" + ",".join(str(n) for n in spec.shape) + "]" for spec in turns)
        bound = " (upper bound)" if any(spec.upper_bound for spec in turns) else ""
        texts.append(dtype(turns[0].dtype) + ",".join(shapes) + bound)
    return texts


def _delegates(summary: Summary) -> list[str]:
    if not summary.programs:
        return []
    counts: dict[str, int] = {}
    for delegate in summary.delegates:
        counts[delegate.backend] = counts.get(delegate.backend, 0) + 1
    named = [f"{clean(name, 24)} x{count}" for name, count in counts.items()]
    # Told by their memory alone, where hooks know no instances.
    held = [owner_name(held.owner) for held in _held(summary) if is_delegate(held.owner) and not counts]
    return [", ".join([*named, *dict.fromkeys(held)]) or "no delegate"]


def _held(summary: Summary) -> list[OwnerBytes]:
    peaks = (summary.peaks.load, summary.peaks.inference)
    return [held for peak in peaks if peak is not None for held in peak.moment.owners]


def _machine(target: Target, *, emulated: bool) -> str:
    """The instruction set; the CPU's name where it was chosen."""
    arch = {"x86_64": "x86-64", "arm64": "aarch64"}.get(target.arch, clean(target.arch, 12))
    which = clean(target.cpu, 20) if emulated else clean(target.isa, 12)
    return " ".join(part for part in (arch, which) if part)


def _options(summary: Summary, width: int) -> list[str]:
    target = summary.target
    parts = []
    if target.dry:
        parts.append("dry")
    if target.runtime == "python":
        parts.append("python runtime")
    if target.preset not in ("", "wheel"):
        parts.append(f"preset {clean(target.preset, 12)}")
    if target.threads is not None:
        parts.append(f"threads {target.threads}")
    parts += [clean(option, 60) for option in target.backend_options]
    if not parts:
        return []
    return join_parts([f"executorch {clean(target.executorch, 20)}", *parts], width)


def _constants(summary: Summary, width: int) -> list[str]:
    names = [clean(name, 24) for program in summary.programs for name in program.constant_methods]
    if not names:
        return []
    return [shorten(f"constant methods, not run ({len(names)}): {', '.join(names)}", width)]


def peak_lines(summary: Summary, scale: Scale, width: int) -> list[str]:
    """``PEAK of load ...`` and ``PEAK of inference ...``, and where they were when that is not plain."""
    lines: list[str] = []
    for at, peak in (("load", summary.peaks.load), ("inference", summary.peaks.inference)):
        lines += _peak(summary, at, peak, scale, width)
    return [*lines, *_where(summary, width)]


def _peak(summary: Summary, at: str, peak: Peak | None, scale: Scale, width: int) -> list[str]:
    label = f"PEAK of {at}".ljust(18)
    if peak is None:
        return [f"{label}     -       nothing seen"]
    moment = peak.moment
    parts = [
        label + scale.number(moment.private_bytes + moment.file_bytes).rjust(6) + f" {scale.unit}",
        f"{scale.number(moment.private_bytes):>5} private + {scale.number(moment.file_bytes):>4} file",
    ]
    file_bytes = sum(program.file_bytes or 0 for program in summary.programs)
    if file_bytes:
        parts.append(f"{ratio(moment.private_bytes + moment.file_bytes, file_bytes):>4} x file")
    growth = rss_growth(summary, at)
    if growth is not None:
        parts.append(f"RSS {scale.signed(growth):>6}")
    return join_parts(parts, width, indent=" " * 17)


def rss_growth(summary: Summary, at: str) -> int | None:
    """The kernel's high water in a group of phases over RSS before the first phase; null where unknown."""
    first = next((phase.rss for phase in summary.phases if phase.rss is not None), None)
    if first is None:
        return None
    high = next((water.high_water_bytes for water in summary.high_waters if water.at == at), None)
    if high is None:
        marks = [max(p.rss.start_bytes, p.rss.end_bytes) for p in summary.phases if p.rss and _in_group(p, at)]
        high = max(marks, default=None)
    return None if high is None else high - first.start_bytes


def _in_group(phase: Phase, at: str) -> bool:
    return phase.kind.is_load if at == "load" else phase.kind.value == at


def _where(summary: Summary, width: int) -> list[str]:
    methods = {phase.method for phase in summary.phases if phase.method is not None}
    found = [summary.phases[peak.phase] for peak in (summary.peaks.load, summary.peaks.inference) if peak is not None]
    if len(methods) < 2 and len(summary.programs) < 2 and not any(phase.failed for phase in found):
        return []
    count = len(summary.programs)
    texts = [phase_name(phase, programs=count) + (" (failed)" if phase.failed else "") for phase in found]
    return [shorten("peaks in " + ", ".join(texts), width)] if texts else []
