"""Regions that ExecuTorch's allocators hand out from: planned buffers, method and temp allocators."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from etmem.analysis.context import Account
from etmem.analysis.heaps import Extents
from etmem.analysis.keys import as_category
from etmem.analysis.lookup import I64
from etmem.analysis.owners import scope_key
from etmem.analysis.residency import resident_pages
from etmem.analysis.timeline import Window, timeline
from etmem.model.summary import Arena, ArenaUser
from etmem.model.words import EXECUTORCH, HOST, Category
from etmem.program.lifetimes import lifetimes, peak_bytes
from etmem.trace.tables import Claim, Heap, MemoryKind, ScopeKind

Method = tuple[int, str | None]
"""Program id and method."""


def arenas(account: Account) -> tuple[Arena, ...]:
    """Planned buffers first, then allocators; each by program and method."""
    return (*_planned(account), *_allocators(account))


def _planned(account: Account) -> list[Arena]:
    """One row per buffer: where several methods were given the same one, it is nobody's alone."""
    buffers: dict[tuple[object, ...], list[tuple[Claim, int, Method]]] = defaultdict(list)
    for claim, row in zip(account.trace.claims, account.ownership.claim_rows.tolist(), strict=True):
        if claim.owner == EXECUTORCH and claim.name.startswith("planned["):
            # Buffers may lie in one block, and may be outside of all that was seen.
            place = (claim.name, claim.address, row if row >= 0 else claim.stamp)
            buffers[place].append((claim, row, _method(account, claim.scope)))
    found = []
    for uses in buffers.values():
        methods = {method for _, _, method in uses}
        program, method = uses[0][2]
        claim, row, _ = max(uses, key=lambda use: use[0].bytes)
        used = [_in_use(account, *one, claim.name) for one in methods]
        found.append(
            Arena(
                name=claim.name,
                program=program,
                method=method if len(methods) == 1 else None,
                bytes=claim.bytes,
                used_peak_bytes=max((size for size in used if size is not None), default=None),
                allocations=1,
                resident_bytes=_resident(account, claim, row),
            )
        )
    return found


def _in_use(account: Account, program: int, method: str | None, name: str) -> int | None:
    """The most that a method's file has in use of a planned buffer at once."""
    file = account.program(program)
    plan = file.plan(method) if file is not None and method is not None else None
    if plan is None:
        return None
    storages = lifetimes(plan).storages
    return peak_bytes(storage for storage in storages if f"planned[{storage.mem_id}]" == name)


def _resident(account: Account, claim: Claim, row: int) -> int | None:
    """At the last snapshot with pages between the claim and the end of the buffer's block."""
    if row < 0 or account.options.dry:
        return None
    end = int(account.blocks.end[row])
    taken = [s for s in account.trace.snapshots if s.scanned and claim.stamp <= s.stamp < end]
    if not taken:
        return None
    pages = resident_pages(taken[-1].pages)
    edges = np.array([claim.address, claim.address + claim.bytes], np.uint64).astype(np.int64)
    return int(pages.between(edges[:1], edges[1:])[0])


def _allocators(account: Account) -> list[Arena]:
    """One row per allocator and method; what is asked for outside of any method belongs to the one that the
    allocator was first given to."""
    extents = account.extents
    methods: list[Method] = []
    of_extent = np.empty(len(extents), np.int64)
    groups: dict[tuple[int, Method], int] = {}
    for index, (heap, phase) in enumerate(zip(extents.heap.tolist(), extents.phase.tolist(), strict=True)):
        method = _method(account, phase or account.trace.heaps[heap].scope)
        of_extent[index] = groups.setdefault((heap, method), len(groups))
        methods.append(method)
    rows = [
        _allocator(account, heap, method, np.flatnonzero(of_extent == group))
        for (heap, method), group in groups.items()
    ]
    return _summed(rows)


def _summed(rows: list[Arena]) -> list[Arena]:
    """Allocators of one name that served one method, one after the other, as one row."""
    by_place: dict[tuple[str, int, str | None, str], list[Arena]] = defaultdict(list)
    for row in rows:
        by_place[row.name, row.program, row.method, row.owner].append(row)
    return [
        Arena(
            name,
            program,
            method,
            owner=owner,
            bytes=sum(row.bytes for row in same),
            used_peak_bytes=max(row.used_peak_bytes or 0 for row in same),
            allocations=sum(row.allocations for row in same),
            users=_merge_users([user for row in same for user in row.users]),
        )
        for (name, program, method, owner), same in by_place.items()
    ]


def _allocator(account: Account, heap: int, method: Method, rows: I64) -> Arena:
    extents = account.extents
    sizes = extents.bytes[rows].astype(np.int64)
    everything = Window(0, account.last_stamp)
    line = timeline(extents.begin[rows], extents.end[rows], sizes, everything)
    registered = account.trace.heaps[heap]
    return Arena(
        registered.name,
        *method,
        int(sizes.sum()),
        line.peak(0, account.last_stamp)[1],
        len(rows),
        heap_users(account, extents, heap, rows),
        owner=registered.owner or HOST,
    )


User = tuple[str, str | None, Category | None]
"""Owner, instance and category."""


def heap_users(account: Account, extents: Extents, heap: int, rows: I64) -> tuple[ArenaUser, ...]:
    """Who asked a heap for some of its extents, by their scopes."""
    groups: dict[User, list[int]] = defaultdict(list)
    known: dict[int, User] = {}
    for row, scope in zip(rows.tolist(), extents.scope[rows].tolist(), strict=True):
        if scope not in known:
            known[scope] = _user(account, account.trace.heaps[heap], scope)
        groups[known[scope]].append(row)
    users = []
    for user, own in groups.items():
        sizes = extents.bytes[own].astype(np.int64)
        line = timeline(extents.begin[own], extents.end[own], sizes, Window(0, account.last_stamp))
        used = line.peak(0, account.last_stamp)[1]
        users.append(ArenaUser(user[0], user[1], int(sizes.sum()), len(own), user[2], used))
    return _merge_users(users)


def _user(account: Account, heap: Heap, scope: int) -> User:
    """ExecuTorch's own allocators tell who; a client's tell for what, where a tag says it."""
    known = account.table.scopes.get(scope)
    key = scope_key(known, account.table) if known is not None else None
    label = key.instance.label if key is not None and key.instance else None
    if heap.owner == EXECUTORCH:
        return (key.owner if key is not None and key.counted else EXECUTORCH), label, None
    category = as_category(heap.category, Category.METADATA)
    if known is not None and key is not None and known.kind is ScopeKind.TAG:
        category = as_category(known.category or known.name, category)
    # What a device holds is shown by what it is for alone.
    instance = label if heap.memory is MemoryKind.HOST else None
    return heap.owner or (key.owner if key is not None else HOST), instance, category


def _merge_users(users: list[ArenaUser]) -> tuple[ArenaUser, ...]:
    found: dict[User, list[ArenaUser]] = defaultdict(list)
    for user in users:
        found[user.owner, user.instance, user.category].append(user)
    rows = [
        ArenaUser(
            owner,
            instance,
            sum(user.bytes for user in same),
            sum(user.allocations for user in same),
            category,
            max(user.used_peak_bytes for user in same),
        )
        for (owner, instance, category), same in found.items()
    ]
    return tuple(sorted(rows, key=lambda user: (-user.bytes, user.owner, user.instance or "", user.category or "")))


def _method(account: Account, scope: int) -> Method:
    phase = account.table.scopes.get(int(account.table.phase[scope]) if scope < len(account.table.phase) else 0)
    if phase is None:
        return 0, None
    return phase.a, None if phase.kind.name == "PROGRAM_LOAD" else phase.name
