"""The rows of ``Summary.delegates``: what each instance holds, and when."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from etmem.analysis.context import Account
from etmem.analysis.lookup import I64
from etmem.analysis.scopes import Instance, end_of
from etmem.model.summary import DelegateInfo
from etmem.model.words import PhaseKind
from etmem.trace.tables import NEVER, DelegateStage, Scope, SegmentType


def delegates(account: Account) -> tuple[DelegateInfo, ...]:
    """All instances that were initialised, in that order."""
    found = []
    for index, instance in enumerate(account.instances):
        inits = account.scopes_of(instance, DelegateStage.INIT)
        if inits:
            found.append((inits[0].begin_stamp, _delegate(account, index, instance, inits)))
    return tuple(row for _, row in sorted(found, key=lambda pair: pair[0]))


def _delegate(account: Account, index: int, instance: Instance, inits: Sequence[Scope]) -> DelegateInfo:
    """``inits``: where it was asked whether it is available, then its init."""
    init = inits[-1]
    own_rows = account.rows(instance=instance)
    own = account.ledger.timeline(_mask(account, own_rows))
    begin, end = inits[0].begin_stamp, min(end_of(init), account.last_stamp)
    executes = account.scopes_of(instance, DelegateStage.EXECUTE)
    blobs = account.segments.of(instance, SegmentType.BACKEND)
    partners = account.sharing.partners.get(index, frozenset())
    growth = _growth(account, own_rows, partners | {index}, executes[0]) if executes else 0
    return DelegateInfo(
        backend=instance.backend,
        program=instance.program,
        method=instance.method,
        instance=instance.index,
        blob_bytes=sum(segment.bytes for segment, _ in blobs),
        blob_released=_released(account, [row for _, row in blobs], init),
        named_data_bytes=sum(segment.bytes for segment, _ in account.segments.of(instance, SegmentType.NAMED)),
        init_peak_bytes=own.peak(begin, end)[1],
        # Of an init that the process did not survive nothing came after.
        live_after_init_bytes=own.at(end) if init.end_stamp is not None else 0,
        first_execute_growth_bytes=growth,
        steady_bytes=own.at(_steady_stamp(account)) if init.end_stamp is not None else 0,
        execute_allocations=_execute_allocations(account, instance, executes),
        shared_with=tuple(account.instances[partner].label for partner in sorted(partners)),
    )


def _mask(account: Account, rows: I64) -> npt.NDArray[np.bool_]:
    mask = np.zeros(len(account.blocks), np.bool_)
    mask[rows] = True
    return mask


def _growth(account: Account, own_rows: I64, sharers: frozenset[int], execute: Scope) -> int:
    """Of its own blocks, and of those that it shares with others: it may be the one that makes those larger."""
    shared = account.sharing.rows
    by = account.table.instance[account.who.scope[shared]]
    mine = np.concatenate([own_rows, shared[np.isin(by, sorted(sharers))]])
    line = account.ledger.timeline(_mask(account, mine))
    return line.at(min(end_of(execute), account.last_stamp)) - line.at(execute.begin_stamp)


def _released(account: Account, rows: list[int], init: Scope) -> str:
    """When the memory behind the blob went. What was there before the method's load is the caller's buffer:
    giving the segment back frees nothing of it."""
    load = account.table.scopes[int(account.table.phase[init.id])]
    ends = [
        account.blocks.end[row] if row >= 0 and account.blocks.begin[row] > load.begin_stamp else NEVER for row in rows
    ]
    last = max(ends, default=NEVER)
    if last == NEVER:
        return "never"
    return "init" if last <= end_of(init) else "unload"


def _steady_stamp(account: Account) -> int:
    """The end of the last inference, or of the last load where there was none."""
    for kinds in ((PhaseKind.INFERENCE,), (PhaseKind.METHOD_LOAD,)):
        spans = account.spans_of(*kinds)
        if spans:
            return max(span.end for span in spans)
    return account.last_stamp


def _execute_allocations(account: Account, instance: Instance, executes: tuple[Scope, ...]) -> int:
    if not executes:
        return 0
    later = np.zeros(len(account.table.phase), np.bool_)
    index = account.instances.index(instance)
    later[[scope.id for scope in executes[1:]]] = True
    holder = account.table.delegate[account.who.scope]
    mine = account.table.instance[account.who.scope] == index
    return int(account.blocks.count[mine & later[holder] & account.fresh].sum())
