"""The plan as text: verdict, estimate or pools, arenas, findings, contents."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from etmem.report.plan_device import device_lines
from etmem.report.plan_estimate import estimate_lines
from etmem.report.plan_file import arena_lines, content_lines
from etmem.report.table import MIN_WIDTH, join_parts, wrap
from etmem.report.units import Scale, choose_scale, clean, dtype, file_name, file_size

if TYPE_CHECKING:
    from etmem.planning.model import MethodPlan, ProgramPlan, Verdict

_FIRST_FINDINGS = 3
_MAX_METHODS = 3


def render(plan: ProgramPlan, *, width: int = MIN_WIDTH, bytes_exact: bool = False, full: bool = False) -> str:
    """ASCII text of lines at most ``width`` wide, with a newline at the end."""
    width = max(width, MIN_WIDTH)
    scale = _scale(plan, exact=bytes_exact)
    sections = [
        _header(plan, width) + [line for verdict in plan.verdicts for line in _verdict(verdict, plan, width)],
        device_lines(plan, width) if plan.target.microcontroller else estimate_lines(plan, scale, width),
        arena_lines(plan, scale, width, full=full),
        _findings(plan, scale, width, full=full),
        content_lines(plan, width, full=full, exact=bytes_exact),
        [line for note in plan.notes for line in wrap(clean(note, 300), width, rest="  ")],
    ]
    return "\n\n".join("\n".join(section) for section in sections if section) + "\n"


def _scale(plan: ProgramPlan, *, exact: bool) -> Scale:
    largest = max((moment.private_bytes + moment.file_bytes for moment in plan.estimate), default=0)
    planned = max((arena.bytes for method in plan.methods for arena in method.arenas), default=0)
    return choose_scale(max(largest, planned), exact=exact or plan.target.microcontroller)


def _header(plan: ProgramPlan, width: int) -> list[str]:
    file = plan.contents[0]
    parts = [file_name(file.path, 32), file_size(file.file_bytes, exact=plan.target.microcontroller)]
    parts += [_method(method) for method in plan.methods] if len(plan.methods) <= _MAX_METHODS else [
        f"{len(plan.methods)} methods"
    ]  # fmt: skip
    counts: dict[str, int] = {}
    for method in plan.methods:
        for use in method.delegates:
            counts[use.backend] = counts.get(use.backend, 0) + 1
    parts.append(", ".join(f"{clean(name, 24)} x{count}" for name, count in counts.items()) or "no delegate")
    if plan.target.microcontroller:
        calls, kinds = (sum(map(of, plan.methods)) for of in (attrgetter("kernel_calls"), attrgetter("operators")))
        parts.append(f"{calls} kernels ({kinds} different)" if kinds < calls else f"{calls} kernels")
        parts.append(f"{plan.target.name}, {8 * plan.target.pointer_bytes}-bit")
    else:
        parts.append(f"{plan.target.name} {clean(plan.target.isa, 12)}, {plan.loader}")
    if plan.preset != "wheel":
        parts.append(f"preset {plan.preset}")
    lines = join_parts(parts, width)
    if plan.constant_methods:
        names = ", ".join(clean(name, 24) for name in plan.constant_methods)
        lines += wrap(f"constant methods ({len(plan.constant_methods)}): {names}", width, rest="  ")[:2]
    return lines


def _method(method: MethodPlan) -> str:
    shapes = [
        f"{dtype(spec.dtype)}[{','.join(map(str, spec.shape))}]" + (" (upper bound)" if spec.upper_bound else "")
        for spec in method.inputs
    ]
    return clean(" ".join([method.name, *shapes]), 60)


def _verdict(verdict: Verdict, plan: ProgramPlan, width: int) -> list[str]:
    size = f"{_size(verdict.budget_bytes)} {verdict.budget} ({verdict.budget_bytes:,} B)"
    if verdict.fits is None:
        text = f"CANNOT BE TOLD: {size}, {verdict.need_bytes:,} B known to be needed; {verdict.reason}"
    elif verdict.fits:
        text = f"FITS {size}: {verdict.need_bytes:,} B needed, {verdict.left_bytes:,} B left"
    else:
        text = f"DOES NOT FIT {size}: {verdict.need_bytes:,} B needed, {-verdict.left_bytes:,} B too many"
    if plan.target.microcontroller:
        text += f"   target {plan.target.name}"
    if verdict.reason and verdict.fits is not None:
        text += f"; {verdict.reason}"
    return wrap(text, width, rest="  ")


def _size(count: int) -> str:
    for unit, divisor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= divisor:
            value = count / divisor
            return f"{value:.0f} {unit}" if value == int(value) else f"{value:.1f} {unit}"
    return f"{count} B"


def _findings(plan: ProgramPlan, scale: Scale, width: int, *, full: bool) -> list[str]:
    shown = plan.findings if full else plan.findings[:_FIRST_FINDINGS]
    lines = ["FINDINGS"] if shown else []
    for number, finding in enumerate(shown, 1):
        head = f"{number} {finding.code.value}  {scale.with_unit(finding.bytes)}"
        lines += wrap(f"{head}  {clean(finding.advice, 600)}", width, rest="  ")
    left = len(plan.findings) - len(shown)
    return [*lines, f"and {left} more: --full"] if left else lines
