"""The largest moments of load and inference, the steady state, and the largest blocks at each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from etmem.analysis.context import Account, Span
from etmem.analysis.ledger import merge
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


def _group(account: Account, kinds: Sequence[PhaseKind]) -> list[int]:
    return [index for index, span in enumerate(account.spans) if span.kind in kinds]


def _peak(account: Account, group: list[int]) -> tuple[Peak, int]:
    spans = [account.spans[index] for index in group]
    tops = [account.ledger.total.peak(span.begin, span.end) for span in spans]
    # max keeps the first of equals: the earliest moment of the maximum.
    best = max(range(len(group)), key=lambda place: tops[place][1])
    stamp = tops[best][0]
    return Peak(group[best], account.moment(stamp), _owner_peaks(account, spans)), stamp


def _owner_peaks(account: Account, spans: list[Span]) -> tuple[OwnerBytes, ...]:
    """Every owner, all its instances together, at its own largest private + file bytes."""
    tops: dict[str, int] = {}
    for owner in sorted({key.owner for key in account.keys}):
        line = account.ledger.owner_timeline(owner)
        tops[owner] = max((line.peak(span.begin, span.end) for span in spans), key=lambda top: top[1])[0]
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
    found: list[LargestBlock] = []
    for name in _GROUPS:
        if name in stamps:
            found += _largest(account, name, stamps[name])
    return tuple(found)


def _largest(account: Account, at: str, stamp: int) -> list[LargestBlock]:
    rows = np.flatnonzero(account.ledger.live(stamp) & account.ledger.counted)
    sizes = (account.private_bytes + account.file_bytes)[rows]
    groups: dict[tuple[object, ...], list[int]] = {}
    for row in rows[np.argsort(-sizes, kind="stable")].tolist():
        key = account.keys[account.ledger.code[row]]
        size, is_file = int(account.blocks.bytes[row]), bool(account.file_bytes[row])
        group = (-size, key.owner, key.category, account.phase_of(row) or "", is_file)
        if len(groups) == LARGEST and group not in groups:
            break
        groups.setdefault(group, []).append(row)
    return [_block(account, at, same) for same in groups.values()]


def _block(account: Account, at: str, rows: list[int]) -> LargestBlock:
    keys = {account.keys[account.ledger.code[row]] for row in rows}
    key, row = next(iter(keys)), rows[0]
    return LargestBlock(
        at=at,
        owner=key.owner,
        instance=key.instance.label if len(keys) == 1 and key.instance else None,
        category=key.category,
        phase=account.phase_of(row),
        requested_bytes=int(account.blocks.bytes[row]),
        count=len(rows),
        file=bool(account.file_bytes[row]),
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
