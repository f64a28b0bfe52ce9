"""Blocks, events, phases and instructions as tables of plain columns; CSV and Parquet write them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from etmem.analysis.accounting import every_block
from etmem.analysis.context import Account, Context
from etmem.model.summary import InstructionBytes, Phase
from etmem.report.samples import times
from etmem.report.view import View
from etmem.trace.tables import NEVER, BlockKind, EventKind, Events

Column = npt.NDArray[Any] | Sequence[Any]
BATCH = 1 << 18


@dataclass(frozen=True)
class Table:
    """``batches`` are dicts of equal-length columns, all with the same names; None is an empty cell."""

    name: str
    columns: tuple[str, ...]
    batches: Iterator[dict[str, Column]]


def tables(view: View) -> tuple[Table, ...]:
    return (blocks(view), events(view.context), phases(view), operators(view))


def blocks(view: View) -> Table:
    """One row per block that was live in or after the first phase, by begin."""
    account = every_block(view.context)
    columns = (
        "begin_ns", "end_ns", "address", "requested_bytes", "kind", "file", "owner", "instance", "category", "phase",
        "thread",
    )  # fmt: skip
    starts = range(0, max(len(account.blocks), 1), BATCH)
    batches = (_blocks(account, slice(at, at + BATCH), withheld=view.withheld) for at in starts)
    return Table("blocks", columns, batches)


def _blocks(account: Account, part: slice, *, withheld: bool) -> dict[str, Column]:
    all_blocks, codes = account.blocks, account.ledger.code[part]
    keys = [(key.owner, key.instance.label if key.instance else None, key.category.value) for key in account.keys]
    if withheld:
        keys = [(None, None, None)] * len(keys)  # type: ignore[list-item]
    kinds = {kind.value: kind.name.lower() for kind in BlockKind}
    paths = [file.path for file in account.trace.file_maps]
    ended = all_blocks.end[part] != NEVER
    end_ns = times(account, np.where(ended, all_blocks.end[part], 0).astype(np.uint64))
    return {
        "begin_ns": times(account, all_blocks.begin[part]),
        "end_ns": [ns if known else None for ns, known in zip(end_ns, ended.tolist(), strict=True)],
        "address": all_blocks.address[part],
        "requested_bytes": all_blocks.bytes[part],
        "kind": [kinds[kind] for kind in all_blocks.kind[part].tolist()],
        "file": [paths[file] if file >= 0 else None for file in all_blocks.file[part].tolist()],
        "owner": [keys[code][0] for code in codes.tolist()],
        "instance": [keys[code][1] for code in codes.tolist()],
        "category": [keys[code][2] for code in codes.tolist()],
        "phase": _phase_names(account, account.who.phase[part]),
        "thread": all_blocks.thread[part],
    }


def _phase_names(account: Account, ids: npt.NDArray[np.uint32]) -> list[str | None]:
    kinds = {span.scope.id: span.kind.value for span in account.spans}
    return [kinds.get(scope) for scope in ids.tolist()]


def events(context: Context) -> Table:
    """All events of the process, as they were recorded, by stamp."""
    columns = ("stamp", "time_ns", "kind", "address", "size", "scope", "scope_name", "thread")
    return Table("events", columns, (_events(context, part) for part in context.trace.events.batches(BATCH)))


def _events(context: Context, part: Events) -> dict[str, Column]:
    names = {kind.value: kind.name.lower() for kind in EventKind}
    scopes = {scope.id: scope.name or scope.kind.name.lower() for scope in context.trace.scopes.values()}
    return {
        "stamp": part.stamp,
        "time_ns": times(context, part.stamp),
        "kind": [names.get(kind, str(kind)) for kind in part.kind.tolist()],
        "address": part.address,
        "size": part.size,
        "scope": part.scope,
        "scope_name": [scopes.get(scope) for scope in part.scope.tolist()],
        "thread": part.thread,
    }


def phases(view: View) -> Table:
    rows = [_phase(phase) for phase in view.summary.phases]
    columns = tuple(_phase(view.summary.phases[0])) if rows else _PHASE_COLUMNS
    return Table("phases", columns, iter([{name: [row[name] for row in rows] for name in columns}]))


_PHASE_COLUMNS = (
    "kind", "program", "method", "iteration", "start_ns", "end_ns", "failed", "peak_private_bytes", "peak_file_bytes",
    "live_end_private_bytes", "live_end_file_bytes", "allocated_bytes", "allocations", "process_private_bytes",
    "rss_start_bytes", "rss_end_bytes", "rss_peak_bytes",
)  # fmt: skip


def _phase(phase: Phase) -> dict[str, object]:
    rss = phase.rss
    values = (
        phase.kind.value, phase.program, phase.method, phase.iteration, phase.start_ns, phase.end_ns, phase.failed,
        phase.peak.private_bytes, phase.peak.file_bytes, phase.live_end.private_bytes, phase.live_end.file_bytes,
        phase.allocated_bytes, phase.allocations, phase.process_private_bytes,
        rss.start_bytes if rss else None, rss.end_bytes if rss else None, rss.peak_bytes if rss else None,
    )  # fmt: skip
    return dict(zip(_PHASE_COLUMNS, values, strict=True))


def operators(view: View) -> Table:
    """The summary's instructions, one row for the first inference of each and one for all later ones."""
    columns = tuple(field.name for field in fields(InstructionBytes) if field.name != "sources")
    rows = [_instruction(row) for row in view.summary.instructions]
    names = (*columns, "source_file", "source_line")
    return Table("operators", names, iter([{name: [row[name] for row in rows] for name in names}]))


def _instruction(row: InstructionBytes) -> dict[str, object]:
    values: dict[str, object] = {field.name: getattr(row, field.name) for field in fields(row)}
    values["reason"] = row.reason.value if row.reason else None
    source = row.sources[0] if row.sources else None
    return values | {"source_file": source.file if source else None, "source_line": source.line if source else None}
