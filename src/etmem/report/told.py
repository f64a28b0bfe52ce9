"""What the program told of itself: memory of devices, labels, counters."""

from __future__ import annotations

from etmem.model.summary import Counter, Summary
from etmem.model.words import Unit
from etmem.report.names import category_name, memory_name, owner_name
from etmem.report.table import grid, wrap
from etmem.report.units import Scale, choose_scale, clean, file_size

NAME_LIMIT = 32


def device_lines(summary: Summary, scale: Scale, width: int) -> list[str]:
    """Each heap at its own largest; then what is in it, where tags tell."""
    if not summary.device_memory:
        return []
    own = choose_scale(max(heap.peak_bytes for heap in summary.device_memory), exact=scale.divisor == 1)
    rows = [
        (
            memory_name(heap.memory),
            owner_name(heap.owner),
            clean(heap.name, NAME_LIMIT),
            *("-" if size is None else own.number(size) for size in (heap.load_peak_bytes, heap.inference_peak_bytes)),
            "-" if heap.steady_bytes is None else own.number(heap.steady_bytes),
            own.number(heap.peak_bytes),
            own.number(heap.live_end_bytes),
            f"{heap.allocations:,}",
        )
        for heap in summary.device_memory
    ]
    header = ("memory", "owner", "heap", "load", "inference", "steady", "most", "end", "allocs")
    lines = [f"DEVICE MEMORY  {own.unit}, in no total and no RSS", *grid(header, rows, 3, width)]
    for heap in summary.device_memory:
        if len({user.category for user in heap.users}) > 1:
            parts = (f"{category_name(u.category)} {own.plain(u.used_peak_bytes)}" for u in heap.users if u.category)
            lines += wrap(f"{clean(heap.name, NAME_LIMIT)}: {', '.join(parts)}", width, rest="  ")
    return lines


def label_lines(summary: Summary, scale: Scale, width: int) -> list[str]:
    rows = [
        (
            clean(label.name, NAME_LIMIT),
            clean(label.instance, NAME_LIMIT) if label.instance else owner_name(label.owner),
            category_name(label.category),
            f"{label.regions:,}",
            scale.number(label.peak_bytes),
        )
        for label in summary.labels
    ]
    return (
        [f"LABELS  {scale.unit}", *grid(("label", "owner", "category", "regions", "most"), rows, 3, width)]
        if rows
        else []
    )


def counter_lines(summary: Summary, scale: Scale, width: int) -> list[str]:
    """What the program recorded itself; then what sources were asked for, and whose figures these are."""
    exact = scale.divisor == 1
    header = ("counter", "samples", "least", "most", "in load", "in inference", "last")
    lines: list[str] = []
    for title, sampled in (("COUNTERS", False), ("SAMPLED FROM SOURCES", True)):
        rows = [_counter(counter, exact=exact) for counter in summary.counters if bool(counter.source) is sampled]
        lines += [title, *grid(header, rows, 1, width)] if rows else []
    for source in dict.fromkeys(counter.source for counter in summary.counters if counter.source):
        lines += wrap(clean(source, 400), width, rest="  ")
    return lines


def _counter(counter: Counter, *, exact: bool) -> tuple[str, ...]:
    figures = (counter.minimum, counter.maximum, counter.load_maximum, counter.inference_maximum)
    values = (_value(figure, counter.unit, exact=exact) for figure in (*figures, counter.last))
    return clean(counter.name, NAME_LIMIT), f"{counter.samples:,}", *values


def _value(value: int | None, unit: Unit, *, exact: bool) -> str:
    if value is None:
        return "-"
    return file_size(value, exact=exact) if unit is Unit.BYTES and value >= 0 else f"{value:,}"
