"""Descriptions are data: one TOML file per backend, checked when it is read. docs/delegates.md is the format."""

from __future__ import annotations

import re
import tomllib
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from etmem.delegates.description import (
    CATEGORIES,
    FUNCTION_GROUPS,
    Description,
    Dry,
    Evidence,
    Rule,
    Share,
    Tested,
    ThreadRule,
)
from etmem.model.errors import InputError
from etmem.model.words import Category

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

HINT = "docs/delegates.md says what every field means."
_C_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def parse(text: str, name: str) -> Description:
    """One description. ``InputError`` names the file and the field that is wrong."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{name} is not TOML: {error}", HINT) from error
    reader = _Fields(data, name)
    description = Description(
        backend=reader.text("backend"),
        record_stacks=reader.boolean("record_stacks"),
        rules=tuple(_rule(rule) for rule in reader.list_of_fields("rules")),
        threads=ThreadRule(reader.choice("threads", list(ThreadRule))),
        libraries=tuple(_pattern(reader, pattern).pattern for pattern in reader.texts("libraries")),
        shares=tuple(_share(share) for share in reader.list_of_fields("shares")),
        dry=_dry(reader.fields("dry")),
        tested=_tested(reader.fields("tested")),
        class_name=reader.text("class", ""),
        tiles=reader.numbers("tiles"),
        estimate=_estimate(reader),
    )
    reader.done()
    _check(description, name)
    return description


def _check(description: Description, name: str) -> None:
    """What no single field shows."""
    if description.rules and not description.record_stacks:
        raise InputError(f"{name}: rules need record_stacks = true", HINT)
    shared = [share.object for share in description.shares]
    for index, rule in enumerate(description.rules):
        if rule.object is not None and rule.object not in shared:
            raise InputError(f"{name}: rules[{index}]: no [[shares]] has the object {rule.object!r}", HINT)


def _dry(reader: _Fields) -> Dry:
    symbol = reader.text("symbol", "")
    if symbol and not _C_NAME.fullmatch(symbol):
        raise reader.wrong("symbol", "the name of a function as the linker spells it")
    dry = Dry(symbol or None, reader.text("reason"))
    reader.done()
    return dry


def _tested(reader: _Fields) -> Tested:
    by = Evidence(reader.choice("by", list(Evidence)))
    tested = Tested(by, reader.text("what"), tuple(reader.texts("sources")))
    reader.done()
    if by is Evidence.READING and not tested.sources:
        raise reader.wrong("sources", "the files and functions that were read")
    return tested


def _estimate(reader: _Fields) -> str | None:
    reference = reader.text("estimate", "")
    if reference and not re.fullmatch(r"[\w.]+:\w+", reference):
        raise reader.wrong("estimate", "package.module:function")
    return reference or None


def _rule(reader: _Fields) -> Rule:
    groups = [reader.one_of("functions", group, FUNCTION_GROUPS) for group in reader.texts("functions")]
    rule = Rule(
        symbol=_pattern(reader, reader.text("symbol")),
        functions=frozenset().union(*(FUNCTION_GROUPS[group] for group in groups)) if groups else None,
        category=Category(reader.choice("category", CATEGORIES)),
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
        raise InputError(f"{reader.where}: {text!r} is not a regular expression: {error}", HINT) from error


class _Fields:
    """One TOML table, whose fields are each asked for once and by type."""

    def __init__(self, data: dict[str, Any], where: str) -> None:
        self.where = where
        self._data = dict(data)

    def text(self, name: str, default: str | None = None) -> str:
        value = self._take(name, default)
        if not isinstance(value, str):
            raise self.wrong(name, "a string")
        return value

    def boolean(self, name: str) -> bool:
        value = self._take(name)
        if not isinstance(value, bool):
            raise self.wrong(name, "true or false")
        return value

    def texts(self, name: str) -> list[str]:
        value = self._take(name, [])
        if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
            raise self.wrong(name, "a list of strings")
        return value

    def numbers(self, name: str) -> Mapping[str, int]:
        value = self._take(name, {})
        if not isinstance(value, dict) or not all(type(entry) is int and entry > 0 for entry in value.values()):
            raise self.wrong(name, "a table of positive numbers")
        return MappingProxyType(value)

    def choice(self, name: str, choices: Iterable[str]) -> str:
        return self.one_of(name, self.text(name), choices)

    def one_of(self, name: str, value: str, choices: Iterable[str]) -> str:
        if value not in choices:
            raise self.wrong(name, "one of " + ", ".join(choices))
        return value

    def fields(self, name: str) -> _Fields:
        value = self._take(name)
        if not isinstance(value, dict):
            raise self.wrong(name, "a table")
        return _Fields(value, f"{self.where}: {name}")

    def list_of_fields(self, name: str) -> list[_Fields]:
        value = self._take(name, [])
        if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
            raise self.wrong(name, "a list of tables")
        return [_Fields(entry, f"{self.where}: {name}[{index}]") for index, entry in enumerate(value)]

    def done(self) -> None:
        if self._data:
            raise InputError(f"{self.where}: unknown key {next(iter(self._data))!r}", HINT)

    def _take(self, name: str, default: object = None) -> Any:
        value = self._data.pop(name, default)
        if value is None:
            raise InputError(f"{self.where}: {name} is missing", HINT)
        return value

    def wrong(self, name: str, expected: str) -> InputError:
        return InputError(f"{self.where}: {name} has to be {expected}", HINT)
