"""Tables by operator: what instructions do to memory, what they hold at the peak, what lies in planned memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from etmem.model.summary import InstructionBytes, PeakPart, PlannedTensor, SourceLine, Summary
from etmem.report.names import category_name, parse_instance
from etmem.report.table import grid, wrap
from etmem.report.units import Scale, choose_scale, clean, file_name, plural, shorten

MAX_ROWS = 16
FIRST_SCREEN_LINES = 6
LEAST_SHARE = 0.01
"""Of the largest figure, under which a line of the first screen says nothing."""


def instruction_lines(summary: Summary, scale: Scale, width: int) -> list[str]:
    """The instructions that change what is live; of the others, how many they are and what they need at most."""
    rows = [row for row in summary.instructions if _changes(row)]
    if not summary.instructions:
        return []
    header = ("instruction", "operator", "before", "peak", "after", "alloc", "freed", "temp", "planned")
    largest = sorted(rows, key=lambda row: -max(row.allocated_bytes, row.freed_bytes, row.temp_bytes))[:MAX_ROWS]
    shown = [row for row in rows if any(row is one for one in largest)]
    title = "INSTRUCTIONS  {}: live before, at most, after; planned memory in use"
    lines = [shorten(title.format(scale.unit), width), *grid(header, [_row(row, scale) for row in shown], 2, width)]
    left = [row for row in summary.instructions if not any(row is one for one in shown)]
    if left:
        lines += wrap(_left(left, rows, shown, scale), width, rest="  ")
    return lines


def _changes(row: InstructionBytes) -> bool:
    return bool(row.allocations or row.freed_bytes or row.temp_bytes)


def _row(row: InstructionBytes, scale: Scale) -> tuple[str, ...]:
    planned = "" if row.planned_live_bytes is None else scale.number(row.planned_live_bytes)
    live = (row.live_before_bytes, row.peak_bytes, row.live_after_bytes)
    moved = (row.allocated_bytes, row.freed_bytes, row.temp_peak_bytes)
    return _name(row), _operator(row), *(scale.number(size) for size in (*live, *moved)), planned


def _name(row: InstructionBytes) -> str:
    place = "-" if row.instruction is None else str(row.instruction)
    chain = f"{row.chain}:" if row.chain else ""
    later = "" if row.at == "first" else f" later x{row.inferences}" if row.inferences > 1 else " later"
    return f"{clean(row.method, 20)} {chain}{place}{later}"


def _operator(row: InstructionBytes | PeakPart) -> str:
    if isinstance(row, InstructionBytes) and row.reason is not None:
        return row.reason.value.replace("_", " ")
    instance = parse_instance(row.instance) if row.instance else None
    return clean(f"{row.operator}[{instance.index}]" if instance else row.operator, 32)


def _left(
    left: Sequence[InstructionBytes],
    changing: Sequence[InstructionBytes],
    shown: Sequence[InstructionBytes],
    scale: Scale,
) -> str:
    hidden = len(changing) - len(shown)
    idle = len(left) - hidden
    most = max(left, key=lambda row: row.planned_live_bytes or 0)
    texts = [f"{plural(hidden, 'smaller row')} in the JSON"] if hidden else []
    texts += [f"{plural(idle, 'row')} of instructions that allocate and free nothing"] if idle else []
    text = " and ".join(texts)
    if most.planned_live_bytes:
        needs = f"{_name(most)} {_operator(most)} {scale.number(most.planned_live_bytes)}"
        text += f"; most planned memory of these: {needs}"
    return text


def planned_tensor_lines(summary: Summary, scale: Scale, width: int) -> list[str]:
    """The largest tensors of planned memory, in a scale of their own, with what dynamic shapes leave unused."""
    rows = summary.planned_tensors
    if not rows:
        return []
    own = choose_scale(max(row.planned_bytes for row in rows), exact=scale.divisor == 1)
    header = ("tensor", "filled by", "lives", "planned", "used")
    return [
        f"PLANNED MEMORY  {own.unit}, largest tensors; * in use where most is",
        *grid(header, [_tensor(row, own) for row in rows[:MAX_ROWS]], 2, width),
    ]


def _tensor(row: PlannedTensor, scale: Scale) -> tuple[str, ...]:
    shape = "x".join(str(size) for size in row.shape) or "scalar"
    used = "?" if row.used_bytes is None else scale.number(row.used_bytes)
    mark = "*" if row.at_peak else " "
    source = _place(row.sources)
    writer = clean(row.writer, 32) + (f" {source}" if source else "")
    return (
        f"{mark}{clean(row.dtype, 10)} {shape}",
        writer,
        f"{row.first}..{row.last}",
        scale.number(row.planned_bytes),
        used,
    )


def peak_part_lines(summary: Summary, scale: Scale, width: int) -> list[str]:
    """What each instruction holds at the two peaks: allocated while it ran, or by the delegate that it calls."""
    lines: list[str] = []
    for at in dict.fromkeys(part.at for part in summary.peak_parts):
        parts = [part for part in summary.peak_parts if part.at == at and part.bytes][:MAX_ROWS]
        rows = [
            (
                f"{clean(part.method, 20)} {part.instruction}",
                _described(part),
                f"{part.blocks:,}",
                scale.number(part.bytes),
            )
            for part in parts
        ]
        if rows:
            lines += [""] if lines else []
            lines += [f"HELD BY INSTRUCTIONS AT THE PEAK OF {clean(at, 16)}  {scale.unit}"]
            lines += grid(("instruction", "operator", "blocks", "bytes"), rows, 2, width)
    return lines


def _described(part: PeakPart) -> str:
    source = _place(part.sources)
    running = " (running)" if part.running else ""
    return f"{_operator(part)}{running}" + (f" {source}" if source else "")


def delegate_operator_lines(summary: Summary, scale: Scale, width: int) -> list[str]:
    """What delegates hold at the peak of inference by their own kinds of operators, instances together."""
    sums: dict[tuple[str, str, str], list[int]] = {}
    for one in summary.delegate_operators:
        backend = clean(one.owner.removeprefix("delegate:"), 24)
        row = sums.setdefault((backend, clean(one.operator, 40), category_name(one.category)), [0, 0])
        row[0] += one.bytes
        row[1] += one.blocks
    if not sums:
        return []
    ordered = sorted(sums.items(), key=lambda item: -item[1][0])[:MAX_ROWS]
    rows = [(*place, f"{blocks:,}", scale.number(size)) for place, (size, blocks) in ordered]
    header = ("delegate", "its operator", "category", "blocks", "bytes")
    return [f"DELEGATES' OWN OPERATORS AT THE PEAK OF inference  {scale.unit}", *grid(header, rows, 3, width)]


def source_lines(summary: Summary, scale: Scale, width: int) -> list[str]:
    """Which lines of the model make the peak of inference. Empty without an ETRecord."""
    parts = [part for part in summary.peak_parts if part.at == "inference" and part.sources]
    tensors = [row for row in summary.planned_tensors if row.at_peak and row.sources]
    found = [(part.bytes, f"{_operator(part)} {part.instruction}", part.sources) for part in parts]
    found += [(row.planned_bytes, f"planned, {clean(row.writer, 24)}", row.sources) for row in tensors]
    found.sort(key=lambda one: -one[0])
    if not found:
        return []
    kept = [one for one in found if one[0] >= LEAST_SHARE * found[0][0]][:FIRST_SCREEN_LINES]
    rows = [(scale.number(size), name, _line(sources)) for size, name, sources in kept]
    widths = [max(len(row[at]) for row in rows) for at in (0, 1)]
    return [
        f"LINES AT THE PEAK OF INFERENCE  {scale.unit}",
        *(
            shorten(f"{size.rjust(widths[0] + 2)}  {name.ljust(min(widths[1], 30))}  {line}", width)
            for size, name, line in rows
        ),
    ]


def _line(sources: Iterable[SourceLine]) -> str:
    known = [source for source in sources if source.file]
    if not known:
        return _place(sources)
    text = clean(known[0].text, 60)
    return f"{_place(sources)} {text}" if text else _place(sources)


def _place(sources: Iterable[SourceLine]) -> str:
    """``cases.py:53``, and how many more lines there are; without a stack trace the module or the operator."""
    distinct = dict.fromkeys((source.file, source.line) for source in sources if source.file)
    if not distinct:
        names = dict.fromkeys(source.module or source.operator for source in sources)
        return clean(", ".join(list(names)[:3]), 40)
    file, line = next(iter(distinct))
    more = f" +{len(distinct) - 1}" if len(distinct) > 1 else ""
    return f"{file_name(file, 28)}:{line}{more}"
