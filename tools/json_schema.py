"""JSON Schemas of etmem's documents, from their dataclasses: what the tools that write docs/reference share."""

from __future__ import annotations

import ast
import inspect
import json
import sys
import textwrap
import types
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args, get_origin

from etmem.model.codec import hints

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "docs" / "reference"
SIGNED = {"unaccounted_bytes", "other_bytes", "before_bytes", "first_execute_growth_bytes", "saving_bytes"}
"""Byte counts that may be negative: remainders and differences."""


def schema(kind: type, constants: Mapping[str, Any], file_name: str, comment: str) -> dict[str, Any]:
    """JSON Schema, draft 2020-12, of a document. More fields are allowed: later versions of schema 1 may add some.

    ``constants`` are what every such document says, before its other fields.
    """
    root = _object_schema(kind)
    root["properties"] = {name: {"const": value} for name, value in constants.items()} | {
        name: value for name, value in root["properties"].items() if name not in constants
    }
    root["required"].sort(key=lambda name: name not in constants)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"https://github.com/etmem/etmem/docs/reference/{file_name}",
        "$comment": comment,
        "title": constants["schema"],
        **root,
        "$defs": {inner.__name__: _object_schema(inner) for inner in dataclasses_of(kind) if inner is not kind},
    }


def _object_schema(kind: type) -> dict[str, Any]:
    known = hints(kind)
    texts = field_texts(kind)
    properties = {}
    for field in fields(kind):
        value = _value_schema(known[field.name], field.name)
        if field.name in texts:
            value = {"description": texts[field.name], **value}
        properties[field.name] = value
    text = first_paragraph(kind)
    return {
        **({"description": text} if text else {}),
        "type": "object",
        "properties": properties,
        "required": [field.name for field in fields(kind)],
    }


def _value_schema(kind: Any, name: str) -> dict[str, Any]:
    if isinstance(kind, types.UnionType):
        return {"anyOf": [_value_schema(part, name) for part in get_args(kind)]}
    if get_origin(kind) is tuple:
        return {"type": "array", "items": _value_schema(get_args(kind)[0], name)}
    if get_origin(kind) is dict:
        return {"type": "object"}
    return _plain_schema(kind, name)


def _plain_schema(kind: type, name: str) -> dict[str, Any]:
    if is_dataclass(kind):
        return {"$ref": f"#/$defs/{kind.__name__}"}
    if issubclass(kind, Enum):
        return {"enum": [member.value for member in kind]}
    if kind is int and name.endswith("_bytes") and name not in SIGNED:
        return {"type": "integer", "minimum": 0}
    return {"type": {str: "string", int: "integer", bool: "boolean", float: "number", type(None): "null"}[kind]}


def dataclasses_of(kind: type) -> list[type]:
    """The dataclass and all that it holds, in order of appearance."""
    found = [kind]
    for hint in hints(kind).values():
        for part in leaves(hint):
            if is_dataclass(part):
                found += [inner for inner in dataclasses_of(part) if inner not in found]
    return found


def leaves(hint: Any) -> list[type]:
    parts = get_args(hint)
    return [leaf for part in parts if part is not Ellipsis for leaf in leaves(part)] if parts else [hint]


@cache
def field_texts(kind: type) -> dict[str, str]:
    """The string that follows a field in the source is its documentation."""
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0].body  # type: ignore[attr-defined]
    texts: dict[str, str] = {}
    for field, after in pairwise(body):
        named = isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if named and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            texts[field.target.id] = " ".join(str(after.value.value).split()).replace("``", "`")
    return texts


def first_paragraph(kind: type) -> str:
    text = (kind.__doc__ or "").strip()
    if text.startswith(f"{kind.__name__}("):  # what @dataclass writes where there is none
        return ""
    return " ".join(text.split("\n\n")[0].split()).replace("``", "`")


def written(document: Mapping[str, Any]) -> str:
    return json.dumps(document, indent=2) + "\n"


def main(outputs: Mapping[Path, str], arguments: Sequence[str]) -> int:
    """Write what has changed; with ``--check`` only say so."""
    stale = [path for path, text in outputs.items() if not path.exists() or path.read_text() != text]
    if "--check" in arguments:
        sys.stderr.writelines(f"{path.relative_to(ROOT)} is out of date\n" for path in stale)
        return 1 if stale else 0
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(outputs[path])
    return 0
