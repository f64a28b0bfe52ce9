"""XNNPACK's blob as values: a header, a graph in a flatbuffer, and constants inside the blob or named beside it."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from math import prod
from typing import TYPE_CHECKING

from etmem.delegates.xnnpack.schema import NODES, SCHEMA
from etmem.program.flatbuffer import Buffer, MalformedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from etmem.program.flatbuffer import Table

NONE = 0xFFFFFFFF
"""The id of a value that is not there, such as the bias of an operator without one."""
_MAGIC = b"XH00"
_IDENTIFIERS = (b"XN00", b"XN01")
_HEADER = struct.Struct("<4sHIIIQ")
_HEADER_OFFSET = 4
_MAX_DIMENSIONS = 6
_MAX_BYTES = 1 << 48
"""No machine that runs XNNPACK addresses more: a shape beyond it is a damaged one."""
_NODE_INPUTS = (
    "input_id", "input1_id", "filter_id", "bias_id", "input2_id", "input3_id", "input4_id", "input5_id",
    "query_id", "key_id", "value_id", "scale_id", "mask_id",
)  # fmt: skip
_NODE_OUTPUTS = ("output_id", "output_value_id", "output_index_id")
_LISTS = ("perm", "pre_paddings", "post_paddings", "new_shape", "offsets", "sizes")


class DataType(IntEnum):
    """Types of values, numbered as in the file."""

    INVALID = 0
    FP32 = 1
    FP16 = 2
    QINT8 = 3
    QUINT8 = 4
    QINT32 = 5
    QCINT8 = 6
    QCINT32 = 7
    QCINT4 = 8
    QDINT8 = 9
    QBINT4 = 10
    QPINT8 = 11
    INT32 = 12
    PFP32 = 13
    BF16 = 14

    @property
    def bits(self) -> int:
        return _BITS[self]


_BITS = {
    DataType.INVALID: 0, DataType.FP32: 32, DataType.FP16: 16, DataType.QINT8: 8, DataType.QUINT8: 8,
    DataType.QINT32: 32, DataType.QCINT8: 8, DataType.QCINT32: 32, DataType.QCINT4: 4, DataType.QDINT8: 8,
    DataType.QBINT4: 4, DataType.QPINT8: 8, DataType.INT32: 32, DataType.PFP32: 32, DataType.BF16: 16,
}  # fmt: skip


@dataclass(frozen=True)
class Constant:
    """Where a constant's bytes are."""

    bytes: int
    key: str | None
    """Named data of the program; None: inside the blob."""


@dataclass(frozen=True)
class XValue:
    id: int
    dtype: DataType
    dims: tuple[int, ...]
    """Of a dynamic shape the upper bound, which is all that the graph knows."""
    constant: Constant | None
    scales: Constant | None
    """Scales that are constants of their own."""
    external: bool
    group_size: int = 0
    """Of blockwise quantized weights."""
    nonbatch_dims: int = 1
    """Of dynamically quantized values: dimensions that share one pair of parameters."""

    @property
    def elements(self) -> int:
        return prod(self.dims)

    @property
    def nbytes(self) -> int:
        return -(-self.elements * self.dtype.bits // 8)


@dataclass(frozen=True)
class XNode:
    kind: str
    """``FullyConnected``, ``Conv2d``, ``Add``, ..."""
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    attributes: Mapping[str, int]
    lists: Mapping[str, tuple[int, ...]]
    clamped: bool = False
    """Its result is limited to a range."""


@dataclass(frozen=True)
class Graph:
    values: Mapping[int, XValue]
    """By id, in the file's order."""
    nodes: tuple[XNode, ...]
    externals: int
    has_header: bool


def read(blob: memoryview) -> Graph:
    """The graph of one delegate. Raises ``MalformedError`` for anything else."""
    view, constant_bytes = _flatbuffer(blob)
    if bytes(view[4:8]) not in _IDENTIFIERS:
        raise MalformedError(f"an XNNPACK graph of unknown version {bytes(view[4:8])!r}")
    root = Buffer(view, SCHEMA).root("XNNGraph")
    constants = _constants(root, constant_bytes)
    values = {value.id: value for value in (_value(table, constants) for table in root.tables("xvalues"))}
    nodes = tuple(_node(table) for table in root.tables("xnodes"))
    for node in nodes:
        # A bias may be left out, what an operator computes from and where it puts it may not.
        needed = {*node.inputs[:2], *node.outputs}
        for value in (*node.inputs, *node.outputs):
            if value not in values and (value != NONE or value in needed):
                raise MalformedError(f"operand {value} of {node.kind} is no value")
    return Graph(values, nodes, root.integer("num_externs"), constant_bytes is not None)


def _flatbuffer(blob: memoryview) -> tuple[memoryview, int | None]:
    """(the flatbuffer, bytes of the constants behind it; None for blobs of before the header)."""
    if len(blob) < 8:
        raise MalformedError(f"an XNNPACK blob of {len(blob)} bytes")
    if bytes(blob[4:8]) != _MAGIC:
        return blob, None
    if len(blob) < _HEADER_OFFSET + _HEADER.size:
        raise MalformedError("the header of an XNNPACK blob is cut off")
    _, _, start, size, constants, constant_bytes = _HEADER.unpack_from(blob, _HEADER_OFFSET)
    if start + size > len(blob) or constants + constant_bytes > len(blob) or size < 8:
        raise MalformedError("the header of an XNNPACK blob points beyond its end")
    return blob[start : start + size], constant_bytes


def _constants(root: Table, constant_bytes: int | None) -> list[Constant]:
    if constant_bytes is None:
        return [Constant(table.data("storage")[1], None) for table in root.tables("constant_buffer")]
    found = []
    for table in root.tables("constant_data"):
        key, size = table.text("named_key"), table.integer("size")
        if not key and table.integer("offset") != 2**64 - 1 and table.integer("offset") + size > constant_bytes:
            raise MalformedError("a constant beyond the end of an XNNPACK blob")
        found.append(Constant(size, key or None))
    return found


def _value(table: Table, constants: list[Constant]) -> XValue:
    number, found = table.union("xvalue_union")
    tensor, scales, group, nonbatch = found, 0, 0, 1
    if number == 2:
        inner = found.table("tensor_value")
        if inner is None:
            raise MalformedError("a quantized value without a tensor")
        tensor = inner
        kind, parameters = found.union("quant_params")
        if kind in (1, 4):
            scales = parameters.integer("scale_buffer_idx")
        if kind == 3:
            nonbatch = parameters.integer("num_nonbatch_dims")
        if kind == 4:
            group = parameters.integer("group_size")
    try:
        dtype = DataType(tensor.integer("datatype"))
    except ValueError as error:
        raise MalformedError(f"unknown XNNPACK type {tensor.integer('datatype')}") from error
    dims = tensor.numbers("dims")
    if len(dims) > _MAX_DIMENSIONS or prod(dims) * 4 > _MAX_BYTES:
        raise MalformedError(f"an XNNPACK value of shape {list(dims)}")
    return XValue(
        id=tensor.integer("id_out"),
        dtype=dtype,
        dims=dims,
        constant=_constant(constants, tensor.integer("constant_buffer_idx")),
        scales=_constant(constants, scales),
        external=tensor.integer("flags") & 3 != 0,
        group_size=group,
        nonbatch_dims=nonbatch,
    )


def _constant(constants: list[Constant], index: int) -> Constant | None:
    """Index 0 stands for none."""
    if index == 0:
        return None
    if index >= len(constants):
        raise MalformedError(f"constant {index} of {len(constants)} in an XNNPACK blob")
    return constants[index]


def _node(table: Table) -> XNode:
    number, inner = table.union("xnode_union")
    fields = inner.fields
    ids = {name: inner.integer(name) for name in fields if name in _NODE_INPUTS or name in _NODE_OUTPUTS}
    used = ("input1_id", "input2_id", "input3_id", "input4_id", "input5_id")[: _inputs_of(NODES[number - 1][0])]
    inputs = [
        ids[name]
        for name in _NODE_INPUTS
        if name in ids and (not NODES[number - 1][0].startswith("Concatenate") or name in used)
    ]
    return XNode(
        kind=NODES[number - 1][0],
        inputs=tuple(inputs),
        outputs=tuple(ids[name] for name in _NODE_OUTPUTS if name in ids),
        attributes={
            name: inner.integer(name) for name, (_, kind) in fields.items() if kind == "u32" and name not in ids
        },
        lists={name: inner.numbers(name) for name in _LISTS if name in fields},
        clamped=table.table("output_min_max") is not None,
    )


def _inputs_of(kind: str) -> int:
    """How many inputs a concatenation takes; its table has room for five."""
    return int(kind[-1]) if kind.startswith("Concatenate") else 5
