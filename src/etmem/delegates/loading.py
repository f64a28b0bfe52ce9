"""Descriptions are data: one TOML file per backend beside this module, checked when it is read."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from etmem.delegates.description import FUNCTION_GROUPS, Description, Dry, Rule, Share, ThreadRule
from etmem.model.errors import InputError
from etmem.model.words import Category

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from importlib.resources.abc import Traversable

_HINT = "etmem.delegates.description says what every field means."


@cache
def descriptions() -> Mapping[str, Description]:
    """All descriptions that come with etmem, by backend id."""
    return MappingProxyType(_load(files("etmem.delegates").iterdir()))


def stack_backends() -> tuple[str, ...]:
    """The backends whose allocations have to record their call stacks."""
    return tuple(backend for backend, description in descriptions().items() if description.record_stacks)


def _load(entries: Iterable[Traversable]) -> dict[str, Description]:
    found: dict[str, Description] = {}
    for entry in sorted(entries, key=lambda entry: entry.name):
        if entry.name.endswith(".toml"):
            description = parse(entry.read_text(encoding="utf-8"), entry.name)
            if description.backend in found:
                raise InputError(f"{entry.name}: a second description of {description.backend}", _HINT)
            found[description.backend] = description
    return found


def parse(text: str, name: str) -> Description:
    """One description. ``InputError`` names the file and the field that is wrong."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{name} is not TOML: {error}", _HINT) from error
    reader = _Fields(data, name)
    dry = reader.fields("dry")
    symbol = dry.text("symbol", "")
    description = Description(
        backend=reader.text("backend"),
        record_stacks=reader.boolean("record_stacks"),
        rules=tuple(_rule(rule) for rule in reader.list_of_fields("rules")),
        threads=ThreadRule(reader.choice("threads", list(ThreadRule))),
        libraries=tuple(_pattern(reader, pattern).pattern for pattern in reader.texts("libraries")),
        shares=tuple(_share(share) for share in reader.list_of_fields("shares")),
        dry=Dry(symbol or None, dry.text("reason")),
        tiles=reader.numbers("tiles"),
        estimate=reader.text("estimate", "") or None,
    )
    dry.done()
    reader.done()
    if description.rules and not description.record_stacks:
        raise InputError(f"{name}: rules need record_stacks = true", _HINT)
    return description


def _rule(reader: _Fields) -> Rule:
    groups = [reader.one_of("functions", group, FUNCTION_GROUPS) for group in reader.texts("functions")]
    rule = Rule(
        symbol=_pattern(reader, reader.text("symbol")),
        functions=frozenset().union(*(FUNCTION_GROUPS[group] for group in groups)) if groups else None,
        category=Category(reader.choice("category", list(Category))),
        object=reader.text("object", "") or None,
    )
    reader.done()
    return rule


def _share(reader: _Fields) -> Share:
    share = Share(
        object=reader.text("object"),
        option=reader.text("option"),
        by_default=reader.boolean("by_default"),
        note=reader.text("note"),
    )
    reader.done()
    return share


def _pattern(reader: _Fields, text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise InputError(f"{reader.where}: {text!r} is not a regular expression: {error}", _HINT) from error


class _Fields:
    """One TOML table, whose fields are each asked for once and by type."""

    def __init__(self, data: dict[str, Any], where: str) -> None:
        self.where = where
        self._data = dict(data)

    def text(self, name: str, default: str | None = None) -> str:
        value = self._take(name, default)
        if not isinstance(value, str):
            raise self._wrong(name, "a string")
        return value

    def boolean(self, name: str) -> bool:
        value = self._take(name)
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false")
        return value

    def texts(self, name: str) -> list[str]:
        value = self._take(name, [])
        if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
            raise self._wrong(name, "a list of strings")
        return value

    def numbers(self, name: str) -> Mapping[str, int]:
        value = self._take(name, {})
        if not isinstance(value, dict) or not all(type(entry) is int and entry > 0 for entry in value.values()):
            raise self._wrong(name, "a table of positive numbers")
        return MappingProxyType(value)

    def choice(self, name: str, choices: Iterable[str]) -> str:
        return self.one_of(name, self.text(name), choices)

    def one_of(self, name: str, value: str, choices: Iterable[str]) -> str:
        if value not in choices:
            raise self._wrong(name, "one of " + ", ".join(choices))
        return value

    def fields(self, name: str) -> _Fields:
        value = self._take(name)
        if not isinstance(value, dict):
            raise self._wrong(name, "a table")
        return _Fields(value, f"{self.where}: {name}")

    def list_of_fields(self, name: str) -> list[_Fields]:
        value = self._take(name, [])
        if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
            raise self._wrong(name, "a list of tables")
        return [_Fields(entry, f"{self.where}: {name}[{index}]") for index, entry in enumerate(value)]

    def done(self) -> None:
        if self._data:
            raise InputError(f"{self.where}: unknown field {next(iter(self._data))!r}", _HINT)

    def _take(self, name: str, default: object = None) -> Any:
        value = self._data.pop(name, default)
        if value is None:
            raise InputError(f"{self.where}: {name} is missing", _HINT)
        return value

    def _wrong(self, name: str, expected: str) -> InputError:
        return InputError(f"{self.where}: {name} has to be {expected}", _HINT)
