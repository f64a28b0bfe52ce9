"""Findings about weights: original and packed together, packed more than once, originals that stay."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import numpy as np

from etmem.analysis.findings_common import (
    bytes_by_key,
    live_rows,
    mib,
    plural,
    settled_stamp,
    total_bytes,
    worth_a_remark,
)
from etmem.delegates import Description
from etmem.model.summary import Finding
from etmem.model.words import Category, Certainty, FindingCode, delegate
from etmem.trace.tables import DelegateStage, SegmentType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from etmem.analysis.context import Context
    from etmem.analysis.scopes import Instance
    from etmem.trace.tables import Segment

_PARTS = 3
"""Into how many delegates the advice of double_weights splits the one that sets the peak."""
_LEAST_GAIN = 0.05
"""A split that saves less of the weights than this is none to advise."""
_LEAST_PACKED = 4096
"""Smaller packed blocks are operators' own tables, equal without being the same weights."""


def double_weights(context: Context) -> tuple[Finding, ...]:
    """The originals that are live at the load peak beside what the same delegate has packed from them.

    Those that stay for good are another finding's: smaller delegates would not free them earlier.
    """
    if context.peaks.load is None:
        return ()
    stamp = context.peak_stamps["load"]
    packers = bytes_by_key(context, live_rows(context, stamp, Category.PACKED_WEIGHTS))
    packed = {(key.owner, key.instance) for key in packers}
    found: dict[str, dict[Instance, int]] = defaultdict(dict)
    for instance in context.instances:
        owner, live = delegate(instance.backend), sum(weight.bytes for weight in _released(context, instance, stamp))
        # What a weight cache packs belongs to no instance.
        if live and packed & {(owner, instance), (owner, None)}:
            found[owner][instance] = live
    moment = context.peaks.load.moment
    return tuple(
        _double_weights(context, owner, sizes, moment.private_bytes + moment.file_bytes)
        for owner, sizes in found.items()
        if worth_a_remark(context, sum(sizes.values()))
    )


def _double_weights(context: Context, owner: str, sizes: dict[Instance, int], peak: int) -> Finding:
    largest = max(sizes, key=lambda instance: sizes[instance])
    alone = sum(instance.backend == largest.backend for instance in context.instances) == 1
    name = f"{largest.backend}[{largest.index}]" if alone else largest.label
    weights = [weight.bytes for weight in _released(context, largest, context.peak_stamps["load"])]
    saving = sum(weights) - largest_part(weights, _PARTS)
    advice = f"original and packed copies live together until {name} ends its init. "
    if saving > _LEAST_GAIN * sum(weights):
        whose = "the same" if alone else "its"
        advice += f"The largest delegate sets the load peak: in three delegates {whose} weights peak at "
        advice += f"{mib(peak - saving)} MiB."
    else:
        saving = 0
        advice += "Smaller delegates would not lower the peak: one weight is most of it."
    return Finding(
        code=FindingCode.DOUBLE_WEIGHTS,
        owner=owner,
        bytes=sum(sizes.values()),
        saving_bytes=saving,
        certainty=Certainty.ESTIMATED,
        advice=advice,
        detail={"instance": largest.label, "largest_original_bytes": sizes[largest], "load_peak_bytes": peak},
    )


def packed_twice(context: Context) -> tuple[Finding, ...]:
    """Weights that several instances load from the same place in the file, and each packs for itself."""
    sources: dict[Instance, frozenset[object]] = {}
    packed: dict[Instance, Counter[int]] = {}
    for instance in context.instances:
        loaded = context.segments.of(instance, SegmentType.NAMED, SegmentType.BACKEND)
        sources[instance] = frozenset(segment.name if segment.type is SegmentType.NAMED else segment.offset
                                      for segment, _ in loaded)  # fmt: skip
        rows = context.rows(category=Category.PACKED_WEIGHTS, instance=instance)
        pairs = zip(context.blocks.bytes[rows].tolist(), context.blocks.count[rows].tolist(), strict=True)
        packed[instance] = Counter()
        for size, count in pairs:
            packed[instance][size] += count if size >= _LEAST_PACKED else 0
    again: dict[str, Counter[int]] = defaultdict(Counter)
    holders: dict[str, list[Instance]] = defaultdict(list)
    for index, instance in enumerate(context.instances):
        earlier = [
            other
            for other in context.instances[:index]
            if (other.program, other.backend) == (instance.program, instance.backend)
            and sources[other] & sources[instance]
        ]
        known: Counter[int] = Counter()
        for other in earlier:
            known |= packed[other]
        duplicate = packed[instance] & known
        if duplicate:
            again[instance.backend] += duplicate
            holders[instance.backend] += [*(other for other in earlier if packed[other] & duplicate), instance]
    return tuple(
        _packed_twice(context, backend, sizes, list(dict.fromkeys(holders[backend])))
        for backend, sizes in again.items()
        if worth_a_remark(context, _sum(sizes))
    )


def _packed_twice(context: Context, backend: str, sizes: Counter[int], holders: list[Instance]) -> Finding:
    count = _sum(sizes)
    methods = list(dict.fromkeys(instance.method for instance in holders))
    who = f"{', '.join(methods[:-1])} and {methods[-1]} each" if len(methods) > 1 else f"{len(holders)} delegates each"
    description = context.descriptions.get(backend)
    shares = description.shares if isinstance(description, Description) else ()
    options = [share for share in shares if share.object == "weight_cache"]
    how = f"; {backend}:{options[0].option}=true packs them once" if options else ""
    return Finding(
        code=FindingCode.PACKED_TWICE,
        owner=delegate(backend),
        bytes=count,
        saving_bytes=count,
        certainty=Certainty.EXACT,
        advice=f"{who} pack the same weights, which the file holds once ({plural(sizes.total(), 'block')} again){how}.",
        detail={"blocks": sizes.total(), "instances": [instance.label for instance in holders]},
    )


def original_kept(context: Context) -> tuple[Finding, ...]:
    """Originals that are still there when all is loaded and run; not those of an init that never ended."""
    rows = live_rows(context, settled_stamp(context), Category.ORIGINAL_WEIGHTS)
    ended = np.array([key.instance is None or _is_initialised(context, key.instance) for key in context.keys], np.bool_)
    rows = rows[ended[context.ledger.code[rows]]]
    owners = np.array([key.owner for key in context.keys])[context.ledger.code[rows]]
    found = []
    for owner in dict.fromkeys(owners.tolist()):
        kept = rows[owners == owner]
        count, private = total_bytes(context, kept), int(context.private_bytes[kept].sum())
        if worth_a_remark(context, count):
            found.append(_original_kept(context, owner, count, private))
    return tuple(found)


def _is_initialised(context: Context, instance: Instance) -> bool:
    inits = context.scopes_of(instance, DelegateStage.INIT)
    return bool(inits) and inits[-1].end_stamp is not None


def _original_kept(context: Context, owner: str, count: int, private: int) -> Finding:
    from_buffer = context.options.target.loader == "buffer"
    advice = f"{owner.partition(':')[2]}'s original weights stay after its init: "
    if from_buffer:
        advice += "nothing of a buffer can be freed; load with mmap or from the file."
    else:
        file = mib(count - private)
        advice += f"its operators use them as they are, {mib(private)} MiB private and {file} file-backed."
    return Finding(
        code=FindingCode.ORIGINAL_KEPT,
        owner=owner,
        bytes=count,
        saving_bytes=count if from_buffer else None,
        certainty=Certainty.ESTIMATED if from_buffer else Certainty.POSSIBLE,
        advice=advice,
        detail={"private_bytes": private, "file_bytes": count - private},
    )


def largest_part(weights: Sequence[int], parts: int) -> int:
    """The bytes of the largest of ``parts`` runs that the weights are cut into as evenly as can be.

    The order is kept: a delegate takes neighbouring operators.
    """
    low, high = max(weights, default=0), sum(weights)
    while low < high:
        middle = (low + high) // 2
        if _runs(weights, middle) <= parts:
            high = middle
        else:
            low = middle + 1
    return low


def _runs(weights: Sequence[int], limit: int) -> int:
    runs, held = 1, 0
    for weight in weights:
        if held + weight > limit:
            runs, held = runs + 1, 0
        held += weight
    return runs


def _released(context: Context, instance: Instance, stamp: int) -> list[Segment]:
    """The weights and the blob of an instance that are live at a stamp and gone at the end, in the order loaded.

    Their bytes are the file's: the mappings around them are whole pages.
    """
    loaded = context.segments.of(instance, SegmentType.NAMED, SegmentType.BACKEND)
    live, kept = context.ledger.live(stamp), context.ledger.live(settled_stamp(context))
    held = [segment for segment, row in loaded if row >= 0 and live[row] and not kept[row]]
    return sorted(held, key=lambda segment: segment.stamp)


def _sum(sizes: Counter[int]) -> int:
    return sum(size * count for size, count in sizes.items())
