"""Unpacking a .bpte: the program inside it, and the inputs that it bundles as test cases."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from etmem.model.errors import ProgramError
from etmem.program.file import FileKind, identify, mapped
from etmem.program.flatbuffer import Buffer, MalformedError, Table
from etmem.program.reader import malformed_as_error
from etmem.program.values import dtype

if TYPE_CHECKING:
    import os

BundledValue = npt.NDArray[np.generic] | int | float | bool


@dataclass(frozen=True)
class Bundle:
    """``cases`` has, for each method, one tuple of inputs per test case.

    A tensor is an array of its logical shape, owning its memory; where NumPy lacks the type (bfloat16,
    float8), an unsigned integer array of the raw bits.
    """

    program_bytes: bytes
    cases: dict[str, tuple[tuple[BundledValue, ...], ...]]


def unpack(path: str | os.PathLike[str]) -> Bundle:
    """Read a .bpte. Raises ``ProgramError`` for any other or damaged file."""
    name = Path(path).name
    with mapped(path) as view:
        if identify(bytes(view[:64]), name) is not FileKind.BPTE:
            raise ProgramError(f"{name} is not a bundled program (.bpte)", "Profile a .pte directly.")
        with malformed_as_error(name):
            root = Buffer(view).root("BundledProgram")
            start, size = root.data("program")
            program = bytes(view[start : start + size])
            if identify(program[:64], f"the program in {name}") is not FileKind.PTE:
                raise MalformedError("the program inside is not a .pte")
            cases = {
                suite.required_text("method_name"): tuple(_case(case) for case in suite.tables("test_cases"))
                for suite in root.tables("method_test_suites")
            }
            return Bundle(program, cases)


def _case(table: Table) -> tuple[BundledValue, ...]:
    return tuple(_value(entry) for entry in table.tables("inputs"))


def _value(table: Table) -> BundledValue:
    number, inner = table.union("val")
    if number == 2:
        return inner.integer("int_val")
    if number == 3:
        return inner.boolean("bool_val")
    if number == 4:
        return inner.real("double_val")
    return _tensor(inner)


def _tensor(table: Table) -> npt.NDArray[np.generic]:
    kind = dtype(table)
    sizes = table.numbers("sizes")
    order = table.numbers("dim_order") or tuple(range(len(sizes)))
    start, count = table.data("data")
    if sorted(order) != list(range(len(sizes))) or any(size < 0 for size in sizes):
        raise MalformedError(f"a bundled tensor of shape {list(sizes)}, dimension order {list(order)}")
    if count != prod(sizes) * kind.bytes:
        raise MalformedError(f"a bundled tensor of shape {list(sizes)} and type {kind.name} with {count} bytes")
    raw = np.frombuffer(table.buffer.view[start : start + count], dtype=np.dtype(kind.numpy).newbyteorder("<"))
    stored = raw.reshape([sizes[dimension] for dimension in order])
    return np.array(stored.transpose(np.argsort(order)), order="C")
