"""The summary as JSON: round trip, its schema, and what a damaged one says."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etmem.model.codec import hints
from etmem.model.errors import InputError
from etmem.model.summary import Summary
from etmem.report.json import from_json, to_json
from tests.report import samples
from tools import gen_summary_schema, json_schema

SCHEMA_PATH = Path(__file__).parents[2] / "docs" / "reference" / "summary.schema.json"
VALIDATOR = jsonschema.Draft202012Validator(json.loads(SCHEMA_PATH.read_text()))

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=4,
)


def values(hint, name):
    """Any value of a type hint, within what the schema says about byte counts."""
    if is_dataclass(hint):
        known = hints(hint)
        return st.builds(
            hint,
            **{field.name: values(known[field.name], field.name) for field in fields(hint) if field.name != "schema"},
        )
    if isinstance(hint, type) and issubclass(hint, Enum):
        return st.sampled_from(hint)
    args = getattr(hint, "__args__", ())
    if type(None) in args:
        return st.none() | values(next(a for a in args if a is not type(None)), name)
    if getattr(hint, "__origin__", None) is tuple:
        return st.lists(values(args[0], name), max_size=2).map(tuple)
    if getattr(hint, "__origin__", None) is dict:
        return st.dictionaries(st.text(max_size=5), JSON_VALUES, max_size=3)
    counted = name.endswith("_bytes") and name not in json_schema.SIGNED
    plain = {str: st.text(max_size=8), bool: st.booleans(), int: st.integers(min_value=0 if counted else None)}
    return plain[hint]


@settings(max_examples=60, deadline=None)
@given(values(Summary, ""))
def test_any_summary_comes_back_and_fits_the_schema(summary):
    text = to_json(summary)
    assert from_json(text) == summary
    assert to_json(from_json(text)) == text
    VALIDATOR.validate(json.loads(text))


@pytest.mark.parametrize("sample", samples.EVERY.values(), ids=samples.EVERY)
def test_samples_come_back_and_fit_the_schema(sample):
    text = to_json(sample())
    assert text.isascii()
    assert from_json(text) == sample()
    VALIDATOR.validate(json.loads(text))


def test_the_schema_comes_first_and_fields_keep_the_dataclass_s_order():
    data = json.loads(to_json(samples.mlp()))
    names = [field.name for field in fields(Summary)]
    assert list(data) == ["schema", *(name for name in names if name != "schema")]
    assert list(data["phases"][0])[:3] == ["kind", "program", "method"]


def test_the_reference_pages_are_up_to_date():
    for path, text in gen_summary_schema.outputs().items():
        assert path.read_text() == text, f"run python tools/gen_summary_schema.py: {path.name} is out of date"


def test_the_schema_refuses_what_it_should():
    data = json.loads(to_json(samples.mlp()))
    for damage in (
        lambda d: d.pop("peaks"),
        lambda d: d["phases"][0].update(kind="lunch"),
        lambda d: d.update(schema="x"),
    ):
        copy = json.loads(json.dumps(data))
        damage(copy)
        assert not VALIDATOR.is_valid(copy)


def test_later_fields_are_ignored():
    data = json.loads(to_json(samples.mlp()))
    data["later"] = 1
    data["phases"][0]["later"] = {"more": []}
    assert from_json(json.dumps(data)) == samples.mlp()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d["phases"][1]["peak"].pop("file_bytes"), "phases[1].peak.file_bytes: missing"),
        (
            lambda d: d["phases"][1]["peak"].update(file_bytes="64"),
            "phases[1].peak.file_bytes: expected int, found str",
        ),
        (
            lambda d: d["phases"][1]["peak"].update(file_bytes=True),
            "phases[1].peak.file_bytes: expected int, found bool",
        ),
        (lambda d: d["findings"][0].update(code="no_such"), "findings[0].code: 'no_such' is none of"),
        (lambda d: d.update(target=[]), "target: expected dict, found list"),
        (lambda d: d.update(schema="etmem.summary/9"), "its schema is 'etmem.summary/9'"),
        (lambda d: d.pop("schema"), "its schema is 'None'"),
    ],
)
def test_damage_is_named_by_its_path(change, message):
    data = json.loads(to_json(samples.mlp()))
    change(data)
    with pytest.raises(InputError) as caught:
        from_json(json.dumps(data))
    assert message in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize("text", ["", "{", "[]", "NaN", '{"schema": NaN}', "null", "[" * 100_000])
def test_what_is_no_summary_is_one_clear_error(text):
    with pytest.raises(InputError) as caught:
        from_json(text)
    assert "\n" not in caught.value.message
    assert caught.value.hint
