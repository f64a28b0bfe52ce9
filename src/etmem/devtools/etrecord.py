"""What an ETRecord says of source lines: debug handles, delegate maps, and the edge program's nodes.

An ETRecord is a zip of JSON texts and of pickled tensors. Only the JSON is read, with limits, and nothing of it
is evaluated: the exporter's own reader hands strings of the file to sympy, which runs them.
"""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from etmem.devtools.stack_traces import Frame, parse_stack_trace
from etmem.model.errors import InputError, reason

IDENTIFIER = "ETRECORD_V0"
EDGE_PROGRAM = "edge_dialect_exported_program"
ONLY_METHOD = "forward"
"""The method of a record with one edge program that is named after none."""

MAX_ENTRY = 512 << 20
"""Bytes of one JSON text, unpacked: a few hundred thousand nodes."""
_TENSOR_FILES = ("_state_dict", "_constants", "_example_inputs")
_EDGE_OPS = "executorch.exir.dialects.edge.ops."


@dataclass(frozen=True)
class Node:
    """One operator of the edge program."""

    name: str
    operator: str
    """``aten.convolution.default``."""
    handles: tuple[int, ...]
    modules: tuple[tuple[str, str], ...]
    """(path, type) of the modules around it, outermost first: ``("layers.0", "torch.nn...Conv2d")``."""
    stack: tuple[Frame, ...]
    """Outermost first."""
    stack_trace: str
    shapes: tuple[tuple[int | None, ...], ...]
    """Of its outputs; None for a dimension that is not a number."""


@dataclass(frozen=True)
class DelegateRecord:
    backend: str
    handles: Mapping[str, tuple[int, ...]]
    """By the delegate's own identifiers, as text; empty for backends that tell none."""


@dataclass(frozen=True)
class MethodRecord:
    name: str
    handles: Mapping[int, tuple[int, ...]]
    """By instruction."""
    delegates: Mapping[int, DelegateRecord]
    """By the instruction that calls it."""
    nodes: tuple[Node, ...]
    input_shapes: tuple[tuple[int | None, ...], ...]
    """Of the user's tensor inputs."""

    @cached_property
    def by_handle(self) -> Mapping[int, tuple[Node, ...]]:
        found: dict[int, list[Node]] = {}
        for node in self.nodes:
            for handle in node.handles:
                found.setdefault(handle, []).append(node)
        return {handle: tuple(nodes) for handle, nodes in found.items()}

    def nodes_of(self, instruction: int) -> tuple[Node, ...]:
        """The nodes that an instruction came from; of a delegate call, all that the delegate took."""
        handles = self.handles.get(instruction, ())
        return tuple(dict.fromkeys(node for handle in handles for node in self.by_handle.get(handle, ())))


@dataclass(frozen=True)
class ETRecord:
    path: str
    methods: Mapping[str, MethodRecord]


def read_etrecord(path: str | Path) -> ETRecord:
    """Reads a file that ``ETRecord.save`` or ``generate_etrecord`` wrote.

    Raises InputError for what is no ETRecord, is torn, or does not have what the schema says.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return ETRecord(str(path), _methods(_Texts(archive, str(path))))
    except OSError as error:
        raise InputError(f"{path}: cannot read the ETRecord: {reason(error)}") from None
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, zlib.error) as error:
        raise InputError(f"{path} is no ETRecord, or is damaged: {error}", _HINT) from None


_HINT = "Export with generate_etrecord=True and save what get_etrecord() gives."


class _Texts:
    """The JSON texts of an archive, each checked for its size before it is unpacked."""

    def __init__(self, archive: zipfile.ZipFile, path: str) -> None:
        self._archive = archive
        self.path = path
        self.names = tuple(archive.namelist())
        if IDENTIFIER not in self.names:
            raise InputError(f"{path} is no ETRecord: it has no {IDENTIFIER}", _HINT)

    def json(self, name: str) -> Any:
        if self._archive.getinfo(name).file_size > MAX_ENTRY:
            raise self.wrong(f"{name} is larger than {MAX_ENTRY >> 20} MiB")
        with self._archive.open(name) as file:
            # What a header promises need not be what the data unpacks to.
            data = file.read(MAX_ENTRY + 1)
        if len(data) > MAX_ENTRY:
            raise self.wrong(f"{name} is larger than {MAX_ENTRY >> 20} MiB")
        try:
            return json.loads(data)
        except (ValueError, RecursionError):
            raise self.wrong(f"{name} is not JSON") from None

    def mapping(self, name: str) -> dict[str, Any]:
        return self.mapping_of(self.json(name), name) if name in self.names else {}

    def mapping_of(self, value: Any, where: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.wrong(f"{where} is not an object")
        return value

    def wrong(self, what: str) -> InputError:
        return InputError(f"{self.path} is a damaged ETRecord: {what}", _HINT)


def _methods(texts: _Texts) -> dict[str, MethodRecord]:
    handles, delegates = texts.mapping("debug_handle_map"), texts.mapping("delegate_map")
    programs = dict(_programs(texts))
    if not handles:
        raise texts.wrong("it has no debug_handle_map, so it was saved before to_executorch()")
    return {
        method: MethodRecord(
            name=method,
            handles={
                _number(texts, key): _handles(texts, value)
                for key, value in texts.mapping_of(table, "debug_handle_map").items()
            },
            delegates={
                _number(texts, key): _delegate(texts, value)
                for key, value in texts.mapping_of(delegates.get(method, {}), "delegate_map").items()
            },
            nodes=tuple(_nodes(texts, programs[method])) if method in programs else (),
            input_shapes=_input_shapes(programs[method]) if method in programs else (),
        )
        for method, table in handles.items()
    }


def _programs(texts: _Texts) -> Iterator[tuple[str, dict[str, Any]]]:
    """(method, edge program). From 1.5 on there is one for each method, before that one for ``forward``."""
    for name in texts.names:
        if name == EDGE_PROGRAM:
            yield ONLY_METHOD, texts.mapping(name)
        elif name.startswith(EDGE_PROGRAM + "/") and not name.endswith(_TENSOR_FILES):
            yield name.removeprefix(EDGE_PROGRAM + "/"), texts.mapping(name)


def _number(texts: _Texts, key: str) -> int:
    if not re.fullmatch(r"\d{1,9}", key):
        raise texts.wrong(f"{key[:20]!r} is no instruction")
    return int(key)


def _handles(texts: _Texts, value: Any) -> tuple[int, ...]:
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(one, int) and not isinstance(one, bool) for one in values):
        raise texts.wrong("a debug handle is no number")
    return tuple(values)


def _delegate(texts: _Texts, value: Any) -> DelegateRecord:
    entry = texts.mapping_of(value, "delegate_map")
    name, table = entry.get("name"), entry.get("delegate_map") or {}
    if not isinstance(name, str):
        raise texts.wrong("a delegate has no name")
    found = texts.mapping_of(table, "delegate_map")
    return DelegateRecord(name, {str(key): _handles(texts, handles) for key, handles in found.items()})


def _nodes(texts: _Texts, program: dict[str, Any]) -> Iterator[Node]:
    graph = texts.mapping_of(texts.mapping_of(program.get("graph_module"), "graph_module").get("graph"), "graph")
    values = graph.get("tensor_values")
    shapes = values if isinstance(values, dict) else {}
    nodes = graph.get("nodes")
    if not isinstance(nodes, list):
        raise texts.wrong("its edge program has no nodes")
    for entry in nodes:
        node = texts.mapping_of(entry, "a node")
        metadata = texts.mapping_of(node.get("metadata") or {}, "a node's metadata")
        trace = _text(metadata.get("stack_trace"))
        yield Node(
            name=_name(node),
            operator=_text(node.get("target")).removeprefix(_EDGE_OPS),
            handles=tuple(int(number) for number in re.findall(r"\d{1,9}", _text(metadata.get("debug_handle")))),
            modules=tuple(_modules(_text(metadata.get("nn_module_stack")))),
            stack=parse_stack_trace(trace),
            stack_trace=trace,
            shapes=tuple(_shape(shapes.get(name)) for name in _tensors(node.get("outputs"))),
        )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _name(node: dict[str, Any]) -> str:
    """Its own, else that of its first output: older exporters name outputs only."""
    return _text(node.get("name")) or next(iter(_tensors(node.get("outputs"))), "")


def _tensors(values: Any) -> Iterator[str]:
    for value in values if isinstance(values, list) else ():
        tensor = value.get("as_tensor") if isinstance(value, dict) else None
        if isinstance(tensor, dict):
            yield _text(tensor.get("name"))


def _shape(value: Any) -> tuple[int | None, ...]:
    sizes = value.get("sizes") if isinstance(value, dict) else None
    entries = sizes if isinstance(sizes, list) else []
    return tuple(size.get("as_int") if isinstance(size, dict) else None for size in entries)


def _modules(text: str) -> Iterator[tuple[str, str]]:
    """``key,path,type;key,path,type``; a path may itself hold commas in brackets, a key never does."""
    for entry in text.split(";"):
        _, comma, rest = entry.partition(",")
        path, _, kind = rest.rpartition(",")
        if comma:
            yield path, kind


def _input_shapes(program: dict[str, Any]) -> tuple[tuple[int | None, ...], ...]:
    module = program.get("graph_module")
    graph = module.get("graph") if isinstance(module, dict) else None
    signature = module.get("signature") if isinstance(module, dict) else None
    values = graph.get("tensor_values") if isinstance(graph, dict) else None
    specs = signature.get("input_specs") if isinstance(signature, dict) else None
    known = values if isinstance(values, dict) else {}
    users = (
        spec.get("user_input") if isinstance(spec, dict) else None
        for spec in (specs if isinstance(specs, list) else ())
    )
    arguments = [user.get("arg") for user in users if isinstance(user, dict)]
    return tuple(_shape(known.get(name)) for name in _tensors(arguments))
