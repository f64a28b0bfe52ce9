"""Owner, instance and category of every block. Each rule overrides the ones before it:

1. the innermost scope: a tag, a delegate, an instruction, a phase; outside of any, the application. Where hooks know no
   delegates, the call stack tells them;
2. in a delegate, what its description makes of the call stack;
3. a segment that the data loader handed out lies in the block;
4. a registered heap allocates from the block;
5. a claim: first those of ExecuTorch and delegates, then the application's, on what is still its own;
6. the profiler's own scopes.

2 to 5 hold for the block's whole life, back to its allocation.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from etmem.analysis import by_stack
from etmem.analysis.descriptions import ALLOCATION_FUNCTIONS, Descriptions
from etmem.analysis.heaps import Extents, blocks_of
from etmem.analysis.keys import INPUTS_OUTPUTS, OTHER, OWN, Key, KeyBook, as_category
from etmem.analysis.lookup import I64, containing
from etmem.analysis.scopes import ScopeTable
from etmem.analysis.segments import Segments
from etmem.analysis.symbols import Symbolizer
from etmem.analysis.threads import Attributed
from etmem.model.words import EXECUTORCH, HOST, Category, delegate, is_counted
from etmem.trace.tables import U8, U32, Blocks, Heap, Scope, ScopeKind, Trace

I32 = npt.NDArray[np.int32]


@dataclass(frozen=True)
class SharedObject:
    """Something that several instances of a backend may share: its blocks' rows, by begin."""

    backend: str
    name: str
    rows: I64


@dataclass(frozen=True)
class Ownership:
    keys: tuple[Key, ...]
    code: I32
    """Per block, index into ``keys``."""
    claimed: npt.NDArray[np.bool_]
    """Per block, whether the application claimed it (inputs, outputs)."""
    claim_rows: I64
    """Per claim of the trace, the row of its block, or -1."""
    shared: tuple[SharedObject, ...]


def assign(
    trace: Trace,
    blocks: Blocks,
    who: Attributed,
    table: ScopeTable,
    *,
    extents: Extents,
    segments: Segments,
    descriptions: Descriptions,
    symbolizer: Symbolizer,
) -> Ownership:
    """Files every block under a key. ``who`` has one row per block."""
    book = KeyBook()
    code = _by_scope(table, book)[who.scope]
    shared = _by_stack(trace, blocks, who, table, descriptions, symbolizer, book, code)
    for row, key in segments.block_keys().items():
        code[row] = book.code(key)
    _by_heap(trace, blocks, extents, table, book, code)
    claim_rows = _claim_rows(trace, blocks)
    claimed = _by_claim(trace, claim_rows, book, code)
    code[table.profiler[who.scope]] = book.code(OWN)
    return Ownership(book.keys, code, claimed, claim_rows, shared)


def _by_scope(table: ScopeTable, book: KeyBook) -> I32:
    codes = np.full(len(table.phase), book.code(OTHER), np.int32)
    for scope in table.scopes.values():
        codes[scope.id] = book.code(scope_key(scope, table))
    return codes


def scope_key(scope: Scope, table: ScopeTable) -> Key:
    """What a scope says of what is allocated in it."""
    if table.profiler[scope.id]:
        return OWN
    holder, phase = int(table.delegate[scope.id]), int(table.phase[scope.id])
    if holder:
        index = int(table.instance[scope.id])
        instance = table.instances[index] if index >= 0 else None
        key = Key(delegate(table.scopes[holder].name), instance, Category.METADATA)
    elif phase:
        scratch = _in_instruction(scope, table) and table.scopes[phase].kind is ScopeKind.INFERENCE
        key = Key(EXECUTORCH, None, Category.KERNEL_SCRATCH if scratch else Category.METADATA)
    else:
        key = OTHER
    if scope.kind is ScopeKind.TAG:
        return Key(key.owner, key.instance, as_category(scope.category or scope.name, key.category))
    return key


def _in_instruction(scope: Scope | None, table: ScopeTable) -> bool:
    while scope is not None and not scope.kind.is_phase:
        if scope.kind is ScopeKind.INSTRUCTION:
            return True
        scope = table.scopes.get(scope.parent)
    return False


def _by_stack(
    trace: Trace,
    blocks: Blocks,
    who: Attributed,
    table: ScopeTable,
    descriptions: Descriptions,
    symbolizer: Symbolizer,
    book: KeyBook,
    code: I32,
) -> tuple[SharedObject, ...]:
    """Asks each delegate's description about each call stack once."""
    objects: dict[tuple[str, str], list[I64]] = defaultdict(list)
    rows_of = dict(_delegate_rows(who, table))
    if by_stack.asked_for(trace):
        rows_of = dict(by_stack.delegate_rows(trace, blocks, who, table, symbolizer, descriptions))
        for backend, rows in rows_of.items():
            code[rows] = book.code(Key(delegate(backend), None, Category.METADATA))
    keys = dict(enumerate(book.keys))
    for backend, rows in rows_of.items():
        description = descriptions.get(backend)
        if description is None:
            continue
        for group, (stack, function) in _distinct(rows, blocks.stack[rows], blocks.function[rows]):
            symbols = symbolizer.stack(trace.stacks.get(stack, ()))
            category = description.category(symbols, function)
            recoded = {
                old: book.code(Key(keys[old].owner, keys[old].instance, category))
                for old in np.unique(code[group]).tolist()
            }
            code[group] = [recoded[old] for old in code[group].tolist()]
            name = description.shared(symbols, function)
            if name is not None:
                objects[backend, name].append(group)
    return tuple(
        SharedObject(backend, name, np.sort(np.concatenate(groups))) for (backend, name), groups in objects.items()
    )


def _delegate_rows(who: Attributed, table: ScopeTable) -> Mapping[str, I64]:
    """The rows of the blocks allocated inside each backend, but for those that a tag files."""
    backend_of: dict[str, list[int]] = defaultdict(list)
    for scope in table.scopes.values():
        if table.delegate[scope.id] and scope.kind is not ScopeKind.TAG and not table.profiler[scope.id]:
            backend_of[table.scopes[int(table.delegate[scope.id])].name].append(scope.id)
    number = np.zeros(len(table.phase), np.int32)
    for index, scopes in enumerate(backend_of.values(), start=1):
        number[scopes] = index
    of_block = number[who.scope]
    return {backend: np.flatnonzero(of_block == index) for index, backend in enumerate(backend_of, start=1)}


def _distinct(rows: I64, stacks: U32, functions: U8) -> list[tuple[I64, tuple[int, str]]]:
    """The rows in groups of one stack and one allocating function each."""
    pairs = stacks.astype(np.int64) << 8 | functions
    values, inverse = np.unique(pairs, return_inverse=True)
    order = np.argsort(inverse, kind="stable")
    groups = np.split(rows[order], np.cumsum(np.bincount(inverse, minlength=len(values)))[:-1]) if len(rows) else []
    return [
        (group, (value >> 8, function_name(value & 255))) for group, value in zip(groups, values.tolist(), strict=True)
    ]


def function_name(number: int) -> str:
    """Of ``Blocks.function``."""
    return ALLOCATION_FUNCTIONS[number] if number < len(ALLOCATION_FUNCTIONS) else "mmap"


def _by_heap(trace: Trace, blocks: Blocks, extents: Extents, table: ScopeTable, book: KeyBook, code: I32) -> None:
    """A heap without an owner leaves its blocks with theirs. A tag tells the category of an extent that is a block of
    its own; a block that is handed out in parts has the heap's."""
    if not len(blocks) or not len(extents):
        return
    rows = blocks_of(extents, blocks)
    tags = [scope.id for scope in table.scopes.values() if scope.kind is ScopeKind.TAG]
    tagged = np.isin(extents.scope, tags) & (blocks.begin[rows] == extents.begin) & (rows >= 0)
    for heap in np.unique(extents.heap).tolist():
        registered = trace.heaps.get(heap)
        if registered is None:
            continue
        here = (extents.heap == heap) & (rows >= 0)
        for of_tag in (False, True):
            held = np.unique(rows[here & (tagged == of_tag)])
            for old in np.unique(code[held]).tolist():
                key = _of_heap(registered, book.keys[old], keep_category=of_tag)
                code[held[code[held] == old]] = book.code(key)


def _of_heap(heap: Heap, key: Key, *, keep_category: bool) -> Key:
    instance = key.instance if heap.owner in ("", key.owner) else None
    category = key.category if keep_category or not heap.category else as_category(heap.category, Category.METADATA)
    return Key(heap.owner or key.owner, instance, category)


def _claim_rows(trace: Trace, blocks: Blocks) -> I64:
    addresses = np.array([claim.address for claim in trace.claims], np.uint64)
    stamps = np.array([claim.stamp for claim in trace.claims], np.uint64)
    return containing(blocks, addresses, stamps)


def _by_claim(trace: Trace, rows: I64, book: KeyBook, code: I32) -> npt.NDArray[np.bool_]:
    claimed = np.zeros(len(code), np.bool_)
    held = [(claim, row) for claim, row in zip(trace.claims, rows.tolist(), strict=True) if row >= 0]
    for claim, row in held:
        if is_counted(claim.owner):
            code[row] = book.code(Key(claim.owner, None, as_category(claim.category, Category.METADATA)))
    keys = book.keys
    for claim, row in held:
        # The runtime may be handed its own planned memory as an output: that stays planned memory.
        if claim.owner == HOST and keys[code[row]].owner == HOST:
            claimed[row] = True
    code[claimed] = book.code(INPUTS_OUTPUTS)
    return claimed
