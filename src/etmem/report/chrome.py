"""Planned memory as a Chrome trace, in the form that ExecuTorch's memory planning inspection has.

Each thread is an instruction, each process a planned buffer; a slice is a place in it, from its offset on and as
long as its bytes. Scrolling down goes forward in time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from etmem.report.plans import PlanMap, PlannedStorage
from etmem.report.view import View


def render(view: View) -> bytes:
    """A program with one method has its mem_ids as processes; of several, buffers are numbered through."""
    events: list[dict[str, object]] = []
    process = 0
    for plan in view.plans:
        for mem_id, _ in plan.buffers:
            process = mem_id if len(view.plans) == 1 else process + 1
            events += _buffer(plan, mem_id, process)
    return json.dumps({"traceEvents": events}, separators=(",", ":"), ensure_ascii=True).encode("ascii")


def _buffer(plan: PlanMap, mem_id: int, process: int) -> Iterator[dict[str, object]]:
    storages = sorted((one for one in plan.storages if one.mem_id == mem_id), key=lambda one: one.offset)
    if not storages:
        return
    yield _name("process_name", process, 0, f"{plan.method} planned[{mem_id}]")
    for time, instruction in enumerate(plan.instructions):
        live = [one for one in storages if one.first <= time <= one.last]
        if live:
            yield _name("thread_name", process, time, f"{time} {instruction}")
        yield from (_slice(plan, one, process, time) for one in live)


def _slice(plan: PlanMap, one: PlannedStorage, process: int, time: int) -> dict[str, object]:
    return {
        "name": one.label,
        "cat": "memory_allocation",
        "ph": "X",
        "ts": one.offset,
        "dur": one.bytes,
        "pid": process,
        "tid": time,
        "args": {
            "op_name": plan.instructions[one.first] if one.first >= 0 else one.kind,
            "Memory ID": one.mem_id,
            "fqn": one.source.module if one.source else "",
            "source": f"{one.source.file}:{one.source.line}" if one.source else "",
            "bytes": one.bytes,
            "first": one.first,
            "last": one.last,
        },
    }


def _name(what: str, process: int, thread: int, name: str) -> dict[str, object]:
    return {"name": what, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}
