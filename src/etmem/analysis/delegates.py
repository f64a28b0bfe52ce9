"""The rows of ``Summary.delegates``: what each instance holds, and when."""

from __future__ import annotations

import numpy as np

from etmem.analysis.context import Account
from etmem.analysis.scopes import Instance, end_of
from etmem.analysis.timeline import Timeline, timeline
from etmem.model.summary import DelegateInfo
from etmem.model.words import PhaseKind
from etmem.trace.tables import NEVER, DelegateStage, Scope, SegmentType


def delegates(account: Account) -> tuple[DelegateInfo, ...]:
    """All instances that were initialised, in that order."""
    found = []
    for index, instance in enumerate(account.instances):
        inits = account.scopes_of(instance, DelegateStage.INIT)
        if inits:
            found.append((inits[0].begin_stamp, _delegate(account, index, instance, inits[0])))
    return tuple(row for _, row in sorted(found, key=lambda pair: pair[0]))


def _delegate(account: Account, index: int, instance: Instance, init: Scope) -> DelegateInfo:
    own = _own_line(account, instance)
    begin, end = init.begin_stamp, min(end_of(init), account.last_stamp)
    executes = account.scopes_of(instance, DelegateStage.EXECUTE)
    blobs = account.segments.of(instance, SegmentType.BACKEND)
    partners = account.sharing.partners.get(index, frozenset())
    return DelegateInfo(
        backend=instance.backend,
        program=instance.program,
        method=instance.method,
        instance=instance.index,
        blob_bytes=sum(segment.bytes for segment, _ in blobs),
        blob_released=_released(account, [row for _, row in blobs], init),
        named_data_bytes=sum(segment.bytes for segment, _ in account.segments.of(instance, SegmentType.NAMED)),
        init_peak_bytes=own.peak(begin, end)[1],
        live_after_init_bytes=own.at(end),
        first_execute_growth_bytes=_growth(own, executes[0], account.last_stamp) if executes else 0,
        steady_bytes=own.at(_steady_stamp(account)),
        execute_allocations=_execute_allocations(account, instance, executes),
        shared_with=tuple(account.instances[partner].label for partner in sorted(partners)),
    )


def _own_line(account: Account, instance: Instance) -> Timeline:
    """The private and file bytes of the blocks that one instance owns alone."""
    ledger, rows = account.ledger, account.rows(instance=instance)
    sizes = (ledger.private + ledger.file)[rows]
    return timeline(ledger.blocks.begin[rows], ledger.blocks.end[rows], sizes, ledger.window)


def _growth(own: Timeline, execute: Scope, last_stamp: int) -> int:
    return own.at(min(end_of(execute), last_stamp)) - own.at(execute.begin_stamp)


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
    return int(np.count_nonzero(mine & later[holder] & account.fresh))
