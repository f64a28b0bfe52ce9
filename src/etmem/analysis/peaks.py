"""The largest moments of load and inference, the steady state, and the largest blocks at each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from etmem.analysis.context import Account, Span
from etmem.analysis.labels import block_labels
from etmem.analysis.ledger import merge
from etmem.analysis.lookup import I64
from etmem.model.summary import HighWater, LargestBlock, OwnerBytes, Peak, Peaks, Phase
from etmem.model.words import PhaseKind

LARGEST = 20
"""Rows of largest blocks per peak."""

_GROUPS = {
    "load": (PhaseKind.PROGRAM_LOAD, PhaseKind.METHOD_LOAD),
    "inference": (PhaseKind.INFERENCE,),
}


def peaks(account: Account) -> tuple[Peaks, Mapping[str, int]]:
    """The peaks, and the stamps of their moments."""
    found: dict[str, Peak] = {}
    stamps: dict[str, int] = {}
    for name, kinds in _GROUPS.items():
        group = _group(account, kinds)
        if group:
            found[name], stamps[name] = _peak(account, group)
    inferences = _group(account, _GROUPS["inference"])
    if inferences:
        last = max(inferences, key=lambda index: account.spans[index].end)
        stamps["steady"] = account.spans[last].end
        moment = account.moment(stamps["steady"])
        found["steady"] = Peak(last, moment, _merged(moment.owners))
    return Peaks(found.get("load"), found.get("inference"), found.get("steady")), stamps


def stamps_of_owners(account: Account) -> set[int]:
    """Those of the moments that an owner's own peak shows."""
    groups = [[account.spans[index] for index in _group(account, kinds)] for kinds in _GROUPS.values()]
    return {stamp for spans in groups if spans for stamp in _owner_stamps(account, spans).values()}


def _group(account: Account, kinds: Sequence[PhaseKind]) -> list[int]:
    return [index for index, span in enumerate(account.spans) if span.kind in kinds]


def _peak(account: Account, group: list[int]) -> tuple[Peak, int]:
    spans = [account.spans[index] for index in group]
    tops = [account.ledger.total.peak(span.begin, span.end) for span in spans]
    # max keeps the first of equals: the earliest moment of the maximum.
    best = max(range(len(group)), key=lambda place: tops[place][1])
    stamp = tops[best][0]
    return Peak(group[best], account.moment(stamp), _owner_peaks(account, spans)), stamp


def _owner_stamps(account: Account, spans: list[Span]) -> dict[str, int]:
    """When each owner, all its instances together, is largest in any of the phases."""
    tops: dict[str, int] = {}
    for owner in sorted({key.owner for key in account.keys}):
        line = account.ledger.owner_timeline(owner)
        tops[owner] = max((line.peak(span.begin, span.end) for span in spans), key=lambda top: top[1])[0]
    return tops


def _owner_peaks(account: Account, spans: list[Span]) -> tuple[OwnerBytes, ...]:
    """Every owner at its own largest private + file bytes."""
    tops = _owner_stamps(account, spans)
    moments = account.ledger.moments(tops.values())
    owners = [_merged(moments[stamp].owners, owner) for owner, stamp in tops.items()]
    found = [one for rows in owners for one in rows]
    return tuple(sorted(found, key=lambda one: -(one.private_bytes + one.file_bytes)))


def _merged(owners: Sequence[OwnerBytes], only: str | None = None) -> tuple[OwnerBytes, ...]:
    """One row per owner, its instances together."""
    names = dict.fromkeys(one.owner for one in owners if only in (None, one.owner))
    return tuple(merge(name, [one for one in owners if one.owner == name]) for name in names)


def largest_blocks(account: Account, stamps: Mapping[str, int]) -> tuple[LargestBlock, ...]:
    """The largest counted blocks at the peaks of load and inference, equal ones together."""
    labels = block_labels(account)
    found: list[LargestBlock] = []
    for name in _GROUPS:
        if name in stamps:
            found += _largest(account, name, stamps[name], labels)
    return tuple(found)


def _largest(account: Account, at: str, stamp: int, labels: Mapping[int, str]) -> list[LargestBlock]:
    rows = np.flatnonzero(account.ledger.live(stamp) & account.ledger.counted)
    size = account.blocks.bytes[rows].astype(np.int64)
    # Instances of one owner go together, as do phases of one kind.
    place = _numbers((key.owner, key.category) for key in account.keys)[account.ledger.code[rows]]
    phase = account.phase_kind_numbers[account.who.phase[rows]]
    is_file = account.file_bytes[rows] > 0
    label = _numbers(labels.get(row, "") for row in rows.tolist())
    order = np.lexsort((label, is_file, phase, place, -size))
    columns = np.stack([size, place, phase, is_file, label])[:, order]
    first = np.flatnonzero(np.append(True, (columns[:, 1:] != columns[:, :-1]).any(axis=0))[: len(rows)])
    groups = np.split(rows[order], first[1:])[:LARGEST] if len(rows) else []
    return [_block(account, at, same, labels.get(int(same[0]), "")) for same in groups]


def _numbers(values: Iterable[object]) -> npt.NDArray[np.int64]:
    """Equal values as equal numbers, in the order in which they come."""
    numbers: dict[object, int] = {}
    return np.array([numbers.setdefault(value, len(numbers)) for value in values], np.int64)


def _block(account: Account, at: str, rows: I64, label: str) -> LargestBlock:
    codes, row = np.unique(account.ledger.code[rows]), int(rows[0])
    key = account.keys[codes[0]]
    return LargestBlock(
        at=at,
        owner=key.owner,
        instance=key.instance.label if len(codes) == 1 and key.instance else None,
        category=key.category,
        phase=account.phase_of(row),
        requested_bytes=int(account.blocks.bytes[row]),
        count=len(rows),
        file=bool(account.file_bytes[row]),
        label=label,
    )


def high_waters(account: Account, phases: Sequence[Phase], peaks: Peaks) -> tuple[HighWater, ...]:
    """The kernel's high water of load and of inference, beside what was counted at their peaks."""
    found = []
    for name, peak in (("load", peaks.load), ("inference", peaks.inference)):
        group = [phases[index] for index in _group(account, _GROUPS[name])]
        sampled = [(phase, phase.rss) for phase in group if phase.rss is not None]
        high = [rss.peak_bytes for _, rss in sampled if rss.peak_bytes is not None]
        if peak is None or not high or len(sampled) < len(group):
            continue
        counted = peak.moment.private_bytes + peak.moment.file_bytes
        first, first_rss = sampled[0]
        before = first_rss.start_bytes - first.live_start.private_bytes - first.live_start.file_bytes
        found.append(HighWater(name, max(high), counted, before, max(high) - counted - before))
    return tuple(found)
