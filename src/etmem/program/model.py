"""A program file as values: what a .pte says, with nothing computed and nothing kept open.

Offsets named ``file_offset`` count from the start of the program (which is the start of the file, but for
a program inside a .bpte). Sizes are bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from etmem.program.dtypes import DType


class Dynamism(IntEnum):
    """What a tensor's ``sizes`` mean: its shape, the shape's upper bound, or nothing."""

    STATIC = 0
    DYNAMIC_BOUND = 1
    DYNAMIC_UNBOUND = 2


class ValueKind(IntEnum):
    """The types of a value, numbered as in the file."""

    NONE = 1
    INT = 2
    BOOL = 3
    DOUBLE = 4
    TENSOR = 5
    STRING = 6
    INT_LIST = 7
    DOUBLE_LIST = 8
    BOOL_LIST = 9
    TENSOR_LIST = 10
    OPTIONAL_TENSOR_LIST = 11


@dataclass(frozen=True)
class Header:
    """The first bytes: which format, and where the flatbuffer ends and the segments begin."""

    identifier: str
    extended: bool
    """Whether the file has the extended header. Without it there are no segments."""
    program_bytes: int
    """The flatbuffer's size, from offset 0."""
    segment_base: int
    """File offset that segment offsets count from; 0 without segments."""
    segment_bytes: int
    """All segment data; 0 when the header of an older file does not say."""


@dataclass(frozen=True)
class DataSegment:
    offset: int
    """From the segment base."""
    bytes: int
    file_offset: int


@dataclass(frozen=True)
class Subsegments:
    """Pieces of one segment, by index; index 0 stands for "no data" in the constant segment."""

    segment: int
    offsets: tuple[int, ...]


@dataclass(frozen=True)
class TensorLayout:
    dtype: DType
    sizes: tuple[int, ...]
    dim_order: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        return prod(self.sizes) * self.dtype.bytes


@dataclass(frozen=True)
class NamedData:
    key: str
    segment: int
    layout: TensorLayout | None = None


@dataclass(frozen=True)
class Allocation:
    """A place in planned memory."""

    mem_id: int
    offset: int


@dataclass(frozen=True)
class Tensor:
    dtype: DType
    sizes: tuple[int, ...]
    """The shape, or its upper bound (see ``dynamism``)."""
    dim_order: tuple[int, ...]
    dynamism: Dynamism
    allocation: Allocation | None
    data_index: int
    """Which constant or initial value; 0 for none."""
    mutable_segment: int
    """Index in ``Program.mutable_segments`` of the initial value, where there is one."""
    name: str | None
    """Fully qualified name, where the file has it."""
    external: bool
    """The data is in a .ptd, under ``name``."""
    device_type: int
    device_index: int

    @property
    def nbytes(self) -> int:
        """Bytes at ``sizes``: for a dynamic tensor, at the upper bound."""
        return prod(self.sizes) * self.dtype.bytes

    @property
    def constant(self) -> bool:
        """Never written: its data is the file's own (or the .ptd's)."""
        return self.allocation is None and (self.data_index > 0 or self.external)

    @property
    def has_initial_value(self) -> bool:
        """Planned, and filled from the file when the method is loaded."""
        return self.allocation is not None and (self.data_index > 0 or self.external)


@dataclass(frozen=True)
class Scalar:
    kind: ValueKind
    value: int | float | bool | str


@dataclass(frozen=True)
class ScalarList:
    """Items of an ``INT_LIST`` are indices of values; doubles and booleans are the items themselves."""

    kind: ValueKind
    items: tuple[int, ...] | tuple[float, ...]


@dataclass(frozen=True)
class TensorList:
    """Indices of values; -1 for none in an optional list."""

    items: tuple[int, ...]
    optional: bool


Value = Tensor | Scalar | ScalarList | TensorList | None


@dataclass(frozen=True)
class Operator:
    name: str
    """``aten::permute_copy``."""
    overload: str

    def __str__(self) -> str:
        return f"{self.name}.{self.overload}" if self.overload else self.name


@dataclass(frozen=True)
class Delegate:
    """One delegate of a method. Its number is its place in the method's table."""

    backend: str
    inline: bool
    """The blob is in the flatbuffer (index of ``Program.inline_delegates``), else in a segment."""
    index: int
    compile_specs: tuple[str, ...]
    """Keys only."""


@dataclass(frozen=True)
class KernelCall:
    operator: int
    args: tuple[int, ...]


@dataclass(frozen=True)
class DelegateCall:
    delegate: int
    args: tuple[int, ...]


@dataclass(frozen=True)
class MoveCall:
    source: int
    target: int


@dataclass(frozen=True)
class JumpFalseCall:
    condition: int
    destination: int


@dataclass(frozen=True)
class FreeCall:
    value: int


Instruction = KernelCall | DelegateCall | MoveCall | JumpFalseCall | FreeCall


@dataclass(frozen=True)
class Chain:
    instructions: tuple[Instruction, ...]


@dataclass(frozen=True)
class BufferDevice:
    """Where planned buffer ``mem_id`` lives when not on the CPU."""

    mem_id: int
    device_type: int
    device_index: int


@dataclass(frozen=True)
class Plan:
    """One method."""

    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    values: tuple[Value, ...]
    operators: tuple[Operator, ...]
    delegates: tuple[Delegate, ...]
    chains: tuple[Chain, ...]
    buffer_sizes: tuple[int, ...]
    """By ``mem_id``; entry 0 is reserved and means nothing."""
    buffer_devices: tuple[BufferDevice, ...]

    @property
    def planned(self) -> tuple[tuple[int, int], ...]:
        """(mem_id, bytes) of each planned buffer."""
        return tuple(enumerate(self.buffer_sizes))[1:]

    def tensor(self, index: int) -> Tensor | None:
        value = self.values[index]
        return value if isinstance(value, Tensor) else None


@dataclass(frozen=True)
class InlineData:
    """Bytes inside the flatbuffer."""

    file_offset: int
    bytes: int


@dataclass(frozen=True)
class Program:
    path: str | None
    file_bytes: int
    header: Header
    version: int
    plans: tuple[Plan, ...]
    segments: tuple[DataSegment, ...]
    constant_segment: Subsegments | None
    """None: an old program (``inline_constants``), or one without constants."""
    mutable_segments: tuple[Subsegments, ...]
    named_data: tuple[NamedData, ...]
    inline_constants: tuple[InlineData, ...]
    inline_delegates: tuple[InlineData, ...]

    @property
    def methods(self) -> tuple[str, ...]:
        return tuple(plan.name for plan in self.plans)

    def plan(self, method: str) -> Plan | None:
        return next((plan for plan in self.plans if plan.name == method), None)

    def blob_bytes(self, delegate: Delegate) -> int:
        """Bytes of the blob that the delegate's init is handed."""
        if delegate.inline:
            return self.inline_delegates[delegate.index].bytes
        return self.segments[delegate.index].bytes

    @property
    def constant_bytes(self) -> int:
        """Bytes of all constants outside of delegates."""
        if self.constant_segment is not None:
            return self.segments[self.constant_segment.segment].bytes
        return sum(data.bytes for data in self.inline_constants)


@dataclass(frozen=True)
class ExternalData:
    """A .ptd: named tensors beside programs."""

    path: str | None
    file_bytes: int
    header: Header
    version: int
    segments: tuple[DataSegment, ...]
    named_data: tuple[NamedData, ...]
