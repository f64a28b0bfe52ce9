"""Decoding the values of a method: tensors, scalars and lists."""

from __future__ import annotations

from etmem.program.dtypes import DTYPES, DType
from etmem.program.flatbuffer import MalformedError, Table
from etmem.program.model import Allocation, Dynamism, Scalar, ScalarList, Tensor, TensorList, Value, ValueKind

_EXTERNAL = 1


def value(table: Table) -> Value:
    """One EValue."""
    number, inner = table.union("val")
    kind = ValueKind(number)
    match kind:
        case ValueKind.TENSOR:
            found: Value = tensor(inner)
        case ValueKind.INT:
            found = Scalar(kind, inner.integer("int_val"))
        case ValueKind.BOOL:
            found = Scalar(kind, inner.boolean("bool_val"))
        case ValueKind.DOUBLE:
            found = Scalar(kind, inner.real("double_val"))
        case ValueKind.STRING:
            found = Scalar(kind, inner.text("string_val") or "")
        case ValueKind.TENSOR_LIST | ValueKind.OPTIONAL_TENSOR_LIST:
            found = TensorList(inner.numbers("items"), kind is ValueKind.OPTIONAL_TENSOR_LIST)
        case ValueKind.DOUBLE_LIST:
            found = ScalarList(kind, inner.reals("items"))
        case ValueKind.INT_LIST | ValueKind.BOOL_LIST:
            found = ScalarList(kind, inner.numbers("items"))
        case ValueKind.NONE:
            found = None
    return found


def dtype(table: Table) -> DType:
    """The scalar type of a table that has a ``scalar_type``."""
    code = table.integer("scalar_type")
    found = DTYPES.get(code)
    if found is None:
        raise MalformedError(f"unknown scalar type {code}")
    return found


def tensor(table: Table) -> Tensor:
    extra = table.table("extra_tensor_info")
    dynamism = table.integer("shape_dynamism")
    sizes = table.numbers("sizes")
    if not 0 <= dynamism <= Dynamism.DYNAMIC_UNBOUND:
        raise MalformedError(f"unknown shape dynamism {dynamism}")
    if any(size < 0 for size in sizes):
        raise MalformedError(f"a tensor of shape {list(sizes)}")
    return Tensor(
        dtype=dtype(table),
        sizes=sizes,
        dim_order=table.numbers("dim_order"),
        dynamism=Dynamism(dynamism),
        allocation=_allocation(table.table("allocation_info")),
        data_index=table.integer("data_buffer_idx"),
        mutable_segment=extra.integer("mutable_data_segments_idx") if extra else 0,
        name=extra.text("fully_qualified_name") if extra else None,
        external=extra is not None and extra.integer("location") == _EXTERNAL,
        device_type=extra.integer("device_type") if extra else 0,
        device_index=extra.integer("device_index") if extra else 0,
    )


def _allocation(table: Table | None) -> Allocation | None:
    if table is None:
        return None
    offset = table.integer("memory_offset_high") << 32 | table.integer("memory_offset_low")
    return Allocation(table.integer("memory_id"), offset)
