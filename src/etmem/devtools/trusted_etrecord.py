"""An ETRecord through ExecuTorch's own reader, for records that the user made.

That reader opens formats which etmem's own does not know, and hands strings of the file to sympy, that is to eval.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from etmem.devtools.etrecord import ONLY_METHOD, DelegateRecord, ETRecord, MethodRecord, Node
from etmem.devtools.stack_traces import parse_stack_trace
from etmem.model.errors import CaptureError, InputError


def read_trusted_etrecord(path: str | Path) -> ETRecord:
    """What ``executorch.devtools.parse_etrecord`` makes of the file, in etmem's terms.

    Whatever the file's expressions say is run. Raises InputError for a file that it does not open or that was saved
    before ``to_executorch()``, CaptureError without executorch and torch.
    """
    record = _parsed(path)
    handles = record._debug_handle_map  # noqa: SLF001 -- Inspector reads it so too
    if not handles:
        raise InputError(
            f"{path} has no debug handles, so it was saved before to_executorch()",
            "Save what get_etrecord() gives after to_executorch().",
        )
    edge = record.edge_dialect_program
    programs = edge if isinstance(edge, dict) else {ONLY_METHOD: edge}
    delegates = record._delegate_map or {}  # noqa: SLF001
    return ETRecord(
        str(path),
        {
            method: _method(method, table, delegates.get(method, {}), programs.get(method))
            for method, table in handles.items()
        },
    )


def _parsed(path: str | Path) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch and executorch warn of their own affairs
        try:
            from executorch.devtools import parse_etrecord
        except ImportError as error:
            raise CaptureError(
                f"--trust-etrecord needs executorch and torch: {error}", "Leave it out: etmem reads the record itself."
            ) from error
        try:
            return parse_etrecord(str(path))
        except Exception as error:  # a reader that evaluates its file can raise anything
            says = next(iter(str(error).splitlines()), "")
            raise InputError(
                f"ExecuTorch cannot read {path}: {type(error).__name__}: {says}",
                "Without --trust-etrecord, etmem reads the record itself.",
            ) from error


def _method(name: str, handles: Mapping[str, Any], delegates: Mapping[str, Any], program: Any) -> MethodRecord:
    return MethodRecord(
        name=name,
        handles={int(instruction): _handles(value) for instruction, value in handles.items()},
        delegates={int(instruction): _delegate(entry) for instruction, entry in delegates.items()},
        nodes=tuple(_nodes(program)) if program is not None else (),
        input_shapes=tuple(_input_shapes(program)) if program is not None else (),
    )


def _handles(value: Any) -> tuple[int, ...]:
    return tuple(value) if isinstance(value, list | tuple) else () if value is None else (value,)


def _delegate(entry: Mapping[str, Any]) -> DelegateRecord:
    table = entry.get("delegate_map") or {}
    return DelegateRecord(entry["name"], {str(key): _handles(value) for key, value in table.items()})


def _nodes(program: Any) -> Iterator[Node]:
    for node in program.graph.nodes:
        if node.op == "call_function":
            trace = node.meta.get("stack_trace") or ""
            yield Node(
                name=node.name,
                operator=_operator(node.target),
                handles=_handles(node.meta.get("debug_handle")),
                modules=tuple((path, str(kind)) for path, kind in (node.meta.get("nn_module_stack") or {}).values()),
                stack=parse_stack_trace(trace),
                stack_trace=trace,
                shapes=tuple(_shapes(node.meta.get("val"))),
            )


def _operator(target: Any) -> str:
    """``aten.convolution.default`` of an overload, ``_operator.getitem`` of a function."""
    return str(getattr(target, "_op", None) or f"{target.__module__}.{target.__name__}")


def _shapes(value: Any) -> Iterator[tuple[int | None, ...]]:
    """Of a tensor or of each of a tuple's."""
    for one in value if isinstance(value, list | tuple) else (value,):
        if hasattr(one, "shape"):
            yield tuple(int(size) if isinstance(size, int) else None for size in one.shape)


def _input_shapes(program: Any) -> Iterator[tuple[int | None, ...]]:
    values = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    for name in program.graph_signature.user_inputs:
        yield from _shapes(values.get(name))
