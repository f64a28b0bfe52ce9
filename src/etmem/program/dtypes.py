"""ExecuTorch's scalar types: their numbers in a file, names, sizes, and what NumPy calls them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DType:
    """One scalar type.

    ``numpy`` is the NumPy type that holds a value; where NumPy has none (``bits``), it is an unsigned
    integer of the same width that holds the raw bits.
    """

    code: int
    name: str
    bytes: int
    numpy: str
    bits: bool = False

    @property
    def short(self) -> str:
        """``f32``, ``i64``, ``bool``: for tables of 80 columns."""
        return _SHORT.get(self.name, self.name)


_SHORT = {
    "uint8": "u8", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint16": "u16", "uint32": "u32", "uint64": "u64",
    "float16": "f16", "float32": "f32", "float64": "f64", "bfloat16": "bf16",
    "complex32": "c32", "complex64": "c64", "complex128": "c128",
}  # fmt: skip

DTYPES: dict[int, DType] = {
    dtype.code: dtype
    for dtype in (
        DType(0, "uint8", 1, "uint8"),
        DType(1, "int8", 1, "int8"),
        DType(2, "int16", 2, "int16"),
        DType(3, "int32", 4, "int32"),
        DType(4, "int64", 8, "int64"),
        DType(5, "float16", 2, "float16"),
        DType(6, "float32", 4, "float32"),
        DType(7, "float64", 8, "float64"),
        DType(8, "complex32", 4, "uint32", bits=True),
        DType(9, "complex64", 8, "complex64"),
        DType(10, "complex128", 16, "complex128"),
        DType(11, "bool", 1, "bool"),
        DType(12, "qint8", 1, "int8"),
        DType(13, "quint8", 1, "uint8"),
        DType(14, "qint32", 4, "int32"),
        DType(15, "bfloat16", 2, "uint16", bits=True),
        DType(16, "quint4x2", 1, "uint8", bits=True),
        DType(17, "quint2x4", 1, "uint8", bits=True),
        DType(18, "bits1x8", 1, "uint8", bits=True),
        DType(19, "bits2x4", 1, "uint8", bits=True),
        DType(20, "bits4x2", 1, "uint8", bits=True),
        DType(21, "bits8", 1, "uint8", bits=True),
        DType(22, "bits16", 2, "uint16", bits=True),
        DType(23, "float8_e5m2", 1, "uint8", bits=True),
        DType(24, "float8_e4m3fn", 1, "uint8", bits=True),
        DType(25, "float8_e5m2fnuz", 1, "uint8", bits=True),
        DType(26, "float8_e4m3fnuz", 1, "uint8", bits=True),
        DType(27, "uint16", 2, "uint16"),
        DType(28, "uint32", 4, "uint32"),
        DType(29, "uint64", 8, "uint64"),
    )
}
"""By the number that a file holds."""
