"""Regions that the program gave a name."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from etmem.analysis.context import Account
from etmem.analysis.keys import OTHER
from etmem.analysis.lookup import I64, containing
from etmem.analysis.timeline import Window, timeline
from etmem.model.summary import Label
from etmem.trace.tables import NEVER


def label_rows(account: Account) -> I64:
    """Per label of the trace, the row of its block, or -1."""
    addresses = np.array([label.address for label in account.trace.labels], np.uint64)
    stamps = np.array([label.stamp for label in account.trace.labels], np.uint64)
    return containing(account.blocks, addresses, stamps)


def block_labels(account: Account) -> dict[int, str]:
    """By row of a labelled block, the last name that it was given."""
    rows = label_rows(account).tolist()
    return {row: label.name for row, label in zip(rows, account.trace.labels, strict=True) if row >= 0}


def labels(account: Account) -> tuple[Label, ...]:
    """One row per name and owner; a region lives as long as its block."""
    groups: dict[tuple[str, int], list[int]] = defaultdict(list)
    rows = label_rows(account)
    for place, (label, row) in enumerate(zip(account.trace.labels, rows.tolist(), strict=True)):
        groups[label.name, int(account.ledger.code[row]) if row >= 0 else -1].append(place)
    return tuple(_row(account, name, code, places, rows) for (name, code), places in groups.items())


def _row(account: Account, name: str, code: int, places: list[int], rows: I64) -> Label:
    key = account.keys[code] if code >= 0 else OTHER
    found = [account.trace.labels[place] for place in places]
    begin = np.array([label.stamp for label in found], np.uint64)
    held = rows[places]
    end = np.where(held >= 0, account.blocks.end[held], NEVER) if code >= 0 else np.full(len(found), NEVER)
    sizes = np.array([label.bytes for label in found], np.int64)
    line = timeline(begin, end.astype(np.uint64), sizes, Window(0, account.last_stamp))
    instance = key.instance.label if key.instance else None
    peak = line.peak(0, account.last_stamp)[1]
    return Label(name, key.owner, instance, key.category, len(found), peak)
