"""The table of slots against the schemas in the installed wheel."""

from __future__ import annotations

import pytest

from etmem.program.schema import TABLES, UNIONS
from tests.program.flatc import declared

ENUMS = {"ScalarType", "TensorShapeDynamism", "TensorDataLocation", "DeviceType", "DataLocation"}
TYPES = {
    "uint": "u32", "uint32": "u32", "uint64": "u64", "int": "i32", "int32": "i32", "int64": "i64", "long": "i64",
    "byte": "i8", "ubyte": "u8", "uint8": "u8", "double": "f64", "bool": "bool", "string": "string",
}  # fmt: skip
UNREAD = {"ContainerMetadata", "Frame", "FrameList"}
"""Tables that etmem never looks into."""


def ours(kind: str, unions: dict[str, list[str]], schema: str) -> str:
    if kind.startswith("["):
        return f"[{ours(kind[1:-1], unions, schema)}]"
    if kind in unions:
        return f"|{kind}"
    if kind in ENUMS:
        return "i8"
    return TYPES.get(kind) or name_of(kind, schema)


def name_of(table: str, schema: str) -> str:
    return "BundledTensor" if (table, schema) == ("Tensor", "bundled") else table


@pytest.mark.parametrize("schema", ["program", "flat_tensor", "bundled"])
def test_every_field_has_the_slot_and_type_of_the_schema(schema):
    tables, unions = declared(schema)
    assert len(tables) > 3
    for table, fields in tables.items():
        if table in UNREAD:
            continue
        expected, slot = {}, 0
        for field in fields:
            name, _, kind = field.partition(":")
            slot += kind in unions
            expected[name] = (slot, ours(kind, unions, schema))
            slot += 1
        known = TABLES[name_of(table, schema)]
        # The program's NamedData lacks the layout that flat_tensor's has at its end.
        assert {name: known[name] for name in expected} == expected, table
        assert set(known) - set(expected) <= {"tensor_layout"}, table


@pytest.mark.parametrize("schema", ["program", "bundled"])
def test_unions_have_the_members_of_the_schema(schema):
    _, unions = declared(schema)
    assert unions
    for union, members in unions.items():
        assert UNIONS[union] == tuple(name_of(member, schema) for member in members)
