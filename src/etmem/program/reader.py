"""Reading a .pte into values, and a .ptd beside it. Only the flatbuffer is looked at, never the segments."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from etmem.model.errors import ProgramError
from etmem.program import header as headers
from etmem.program.check import checked
from etmem.program.file import FileKind, Read, identify, mapped, sparse
from etmem.program.flatbuffer import Buffer, MalformedError, Table
from etmem.program.methods import plan
from etmem.program.model import (
    ExternalData,
    InlineData,
    NamedData,
    Program,
    Subsegments,
    TensorLayout,
)
from etmem.program.values import dtype

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

_MOST_TOLD = 240
_HINT = "The file is damaged or incomplete: compare its size and checksum with the exported one, or export it again."


def read(path: str | os.PathLike[str]) -> Program:
    """Read a .pte, or the program inside a .bpte. Needs neither torch nor executorch.

    Raises ``ProgramError`` for a file that is missing, unreadable, not a program, cut off or malformed.
    """
    with opened(path) as (program, _):
        return program


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[tuple[Program, memoryview]]:
    """The same, with the program's bytes, mapped: only the pages that are looked at are read."""
    name = Path(path).name
    with mapped(path) as whole:
        kind = identify(bytes(whole[:64]), name)
        if kind is FileKind.PTD:
            raise ProgramError(f"{name} is a data file (.ptd), not a program", "Give the .pte, and this with --ptd.")
        with malformed_as_error(name):
            start, size = 0, len(whole)
            if kind is FileKind.BPTE:
                start, size = Buffer(whole).root("BundledProgram").data("program")
            view = whole[start : start + size]
            program = _program(view, str(path))
        yield program, view


@contextmanager
def sampled(path: str | os.PathLike[str]) -> Iterator[Read]:
    """For a few bytes of a program's segments: places are those in the program, also of one in a .bpte."""
    with mapped(path) as whole, sparse(path) as read:
        start = 0
        if identify(bytes(whole[:64]), Path(path).name) is FileKind.BPTE:
            start = Buffer(whole).root("BundledProgram").data("program")[0]
        yield lambda place, count: read(start + place, count)


def read_bytes(data: bytes, name: str = "program") -> Program:
    """Read a .pte that is in memory already."""
    if identify(data[:64], name) is not FileKind.PTE:
        raise ProgramError(f"{name} is not a .pte", "Give the bytes of a .pte.")
    with malformed_as_error(name):
        return _program(memoryview(data), None)


def read_data(path: str | os.PathLike[str]) -> ExternalData:
    """Read a .ptd: its segments, and the named tensors in them."""
    name = Path(path).name
    with mapped(path) as view:
        if identify(bytes(view[:64]), name) is not FileKind.PTD:
            raise ProgramError(f"{name} is not a data file (.ptd)", "--ptd takes the .ptd exported with a .pte.")
        with malformed_as_error(name):
            header = headers.data_header(view)
            root = Buffer(view[: header.program_bytes]).root("FlatTensor")
            found = headers.segments(root.tables("segments"), header, len(view))
            named = tuple(_named_data(table) for table in root.tables("named_data"))
            data = ExternalData(str(path), len(view), header, root.integer("version"), found, named)
            for entry in named:
                _check_segment(entry.segment, len(found), f"named data {entry.key!r}")
            return data


@contextmanager
def malformed_as_error(name: str) -> Iterator[None]:
    """Turns ``MalformedError`` into the user's error."""
    try:
        yield
    except MalformedError as error:
        raise ProgramError(f"{name} is malformed: {_short(str(error))}", _HINT) from error


def _short(text: str) -> str:
    """A file may claim shapes of thousands of dimensions."""
    return text if len(text) <= _MOST_TOLD else text[:_MOST_TOLD] + " ..."


def _program(view: memoryview, path: str | None) -> Program:
    header = headers.program_header(view)
    root = Buffer(view[: header.program_bytes]).root("Program")
    constants = root.table("constant_segment")
    return checked(
        Program(
            path=path,
            file_bytes=len(view),
            header=header,
            version=root.integer("version"),
            plans=tuple(plan(table) for table in root.tables("execution_plan")),
            segments=headers.segments(root.tables("segments"), header, len(view)),
            constant_segment=_constants(constants),
            mutable_segments=tuple(_subsegments(table) for table in root.tables("mutable_data_segments")),
            named_data=tuple(_named_data(table) for table in root.tables("named_data")),
            inline_constants=_inline(root, "constant_buffer", lambda table: table.data("storage")),
            inline_delegates=_inline(root, "backend_delegate_data", lambda table: table.data("data")),
        )
    )


def _constants(table: Table | None) -> Subsegments | None:
    """A segment without offsets means the same as none: the constants, if any, are in the flatbuffer."""
    found = _subsegments(table) if table is not None else None
    return found if found is not None and found.offsets else None


def _subsegments(table: Table) -> Subsegments:
    return Subsegments(table.integer("segment_index"), table.numbers("offsets"))


def _named_data(table: Table) -> NamedData:
    layout = table.table("tensor_layout") if "tensor_layout" in table.fields else None
    return NamedData(
        key=table.required_text("key"),
        segment=table.integer("segment_index"),
        layout=None
        if layout is None
        else TensorLayout(dtype(layout), layout.numbers("sizes"), layout.numbers("dim_order")),
    )


def _inline(root: Table, field: str, data: Callable[[Table], tuple[int, int]]) -> tuple[InlineData, ...]:
    return tuple(InlineData(*data(table)) for table in root.tables(field))


def _check_segment(index: int, count: int, what: str) -> None:
    if index >= count:
        raise MalformedError(f"{what} is in segment {index} of {count}")
