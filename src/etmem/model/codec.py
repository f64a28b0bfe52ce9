"""Frozen dataclasses to plain JSON data and back, checked against their type hints.

Fields keep their order. Reading ignores fields that it does not know (a later version may add some),
and refuses missing ones and wrong types with the path of the value: ``phases[2].rss.end_bytes``.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")


class CodecError(ValueError):
    """Data that does not fit the dataclass; the message starts with the path of the value."""


def to_data(value: object) -> Any:
    """Dicts, lists, strings, numbers, booleans and None; enums become their values, paths strings."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_data(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): to_data(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [to_data(item) for item in value]
    return value


def from_data(kind: type[T], data: object, where: str = "") -> T:
    """A value of the dataclass from what ``to_data`` gave. Raises CodecError."""
    return cast("T", _read(kind, data, where))


@cache
def hints(kind: type) -> dict[str, Any]:
    """The resolved type hints of a dataclass."""
    return get_type_hints(kind)


def _read(kind: Any, data: object, where: str) -> object:
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _read_union(get_args(kind), data, where)
    if origin is tuple:
        item = get_args(kind)[0]
        return tuple(_read(item, part, f"{where}[{i}]") for i, part in enumerate(_expect(list, data, where)))
    if origin is dict:
        return dict(_expect(dict, data, where))
    if kind is object:
        return data
    return _read_plain(kind, data, where)


def _read_plain(kind: type, data: object, where: str) -> object:
    if is_dataclass(kind):
        return _read_dataclass(kind, _expect(dict, data, where), where)
    if issubclass(kind, Enum):
        return _read_enum(kind, data, where)
    if kind is Path:
        return Path(_expect(str, data, where))
    return _expect(kind, data, where)


def _read_union(kinds: tuple[Any, ...], data: object, where: str) -> object:
    if data is None and type(None) in kinds:
        return None
    options = [kind for kind in kinds if kind is not type(None)]
    for kind in options[:-1]:
        try:
            return _read(kind, data, where)
        except CodecError:
            continue
    return _read(options[-1], data, where)


def _read_dataclass(kind: type, data: dict[str, object], where: str) -> object:
    known = hints(kind)
    values: dict[str, object] = {}
    for field in fields(kind):
        path = f"{where}.{field.name}" if where else field.name
        if field.name in data:
            values[field.name] = _read(known[field.name], data[field.name], path)
        elif not _has_default(field):
            raise CodecError(f"{path}: missing")
    return cast("Callable[..., object]", kind)(**values)


def _has_default(field: Field[Any]) -> bool:
    return field.default is not MISSING or field.default_factory is not MISSING


def _read_enum(kind: type[Enum], data: object, where: str) -> Enum:
    try:
        return kind(data)
    except ValueError:
        raise CodecError(f"{where}: {data!r} is none of {', '.join(str(m.value) for m in kind)}") from None


def _expect(kind: type, data: object, where: str) -> Any:
    # bool is an int to isinstance: `true` bytes would pass.
    if not isinstance(data, kind) or (isinstance(data, bool) and kind is not bool):
        raise CodecError(f"{where or 'top level'}: expected {kind.__name__}, found {type(data).__name__}")
    return data
