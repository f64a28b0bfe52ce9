"""Debug handles, operators, stack traces and modules for Inspector's events, without ExecuTorch's ETRecord reader."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from etmem.devtools.etrecord import ETRecord, MethodRecord, Node


def attach(blocks: Sequence[Any], record: ETRecord, methods: Sequence[str | None]) -> None:
    """Fills the events in place, as Inspector does with an ETRecord. ``methods``: that of each block."""
    for block, method in zip(blocks, methods, strict=True):
        found = record.methods.get(method) if method is not None else None
        if found is not None:
            for event in block.events:
                _attach(event, found)


def _attach(event: Any, method: MethodRecord) -> None:
    instruction = getattr(event, "_instruction_id", None)
    if instruction is None or instruction not in method.handles or event.name == "Method::execute":
        return
    handles = method.handles[instruction]
    delegate = method.delegates.get(instruction)
    if delegate is not None:
        event.delegate_backend_name = delegate.backend
        if event.delegate_debug_identifier is not None:
            handles = delegate.handles.get(str(event.delegate_debug_identifier), ())
    if not handles:
        return
    event.debug_handles = list(handles)
    for handle in handles:
        for node in method.by_handle.get(handle, ()):
            _add(event, node)


def _add(event: Any, node: Node) -> None:
    event.stack_traces.setdefault(node.name, node.stack_trace)
    event.module_hierarchy.setdefault(node.name, {path: [path, kind] for path, kind in node.modules})
    event.op_types.append(node.operator)
