"""The tiles that XNNPACK's kernels compute at a time, by instruction set: packed sizes are rounded up to them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Gemm:
    """A matrix multiplication's kernel: ``rows`` x ``columns`` outputs, inputs in groups of ``depth``."""

    rows: int
    columns: int
    depth: int = 1
    row_cases: tuple[int, ...] = ()
    """Row counts that have a kernel of their own beside ``rows``."""

    def rows_for(self, pixels: int) -> int:
        """The rows of the kernel that is chosen for so many output rows: the one of least cost."""
        cases = sorted({*self.row_cases, self.rows})
        if pixels in cases:
            return pixels
        return min(
            reversed(cases), key=lambda rows: -(-pixels // rows) * (3 * (rows + self.columns) + rows * self.columns)
        )


@dataclass(frozen=True)
class Tiles:
    f32: Gemm
    f32_narrow: Gemm
    """For few output channels."""
    int8: Gemm
    """Int8 weights, activations quantized beforehand."""
    int8_dynamic: Gemm
    """Int8 weights, activations quantized on the fly."""
    int4: Gemm
    depthwise_f32: int
    """Channels per call of a depthwise convolution."""
    depthwise_int8: int


DEPTHWISE_TAPS = {"f32": (3, 4, 9, 25), "int8": (3, 9, 25)}
"""Windows, in taps, that depthwise kernels exist for; a smaller one takes the next."""

_ONE = (1,)
_TABLE = {
    "avx512": Tiles(
        f32=Gemm(7, 32, row_cases=_ONE),
        f32_narrow=Gemm(7, 16, row_cases=_ONE),
        int8=Gemm(7, 16, 8, _ONE),
        int8_dynamic=Gemm(5, 64, 4, _ONE),
        int4=Gemm(8, 16, 8, _ONE),
        depthwise_f32=16,
        depthwise_int8=32,
    ),
    "avx2": Tiles(
        f32=Gemm(5, 16, row_cases=_ONE),
        f32_narrow=Gemm(10, 8, row_cases=_ONE),
        int8=Gemm(4, 8, 8, _ONE),
        int8_dynamic=Gemm(4, 8, 8, _ONE),
        int4=Gemm(4, 8, 8, _ONE),
        depthwise_f32=16,
        depthwise_int8=16,
    ),
    "avx": Tiles(
        f32=Gemm(5, 16, row_cases=_ONE),
        f32_narrow=Gemm(5, 8, row_cases=_ONE),
        int8=Gemm(2, 4, 8, _ONE),
        int8_dynamic=Gemm(2, 4, 8, _ONE),
        int4=Gemm(2, 4, 8, _ONE),
        depthwise_f32=16,
        depthwise_int8=16,
    ),
    "sse2": Tiles(
        f32=Gemm(4, 8, row_cases=_ONE),
        f32_narrow=Gemm(4, 2),
        int8=Gemm(3, 4, 8, _ONE),
        int8_dynamic=Gemm(3, 4, 8, _ONE),
        int4=Gemm(3, 4, 8, _ONE),
        depthwise_f32=8,
        depthwise_int8=8,
    ),
    "neon": Tiles(
        f32=Gemm(6, 8, row_cases=_ONE),
        f32_narrow=Gemm(4, 2),
        int8=Gemm(4, 16, 4, _ONE),
        int8_dynamic=Gemm(4, 16, 4, _ONE),
        int4=Gemm(4, 16, 4, _ONE),
        depthwise_f32=8,
        depthwise_int8=16,
    ),
}
_TABLE["fma3"] = _TABLE["avx2"]
_TABLE["sse4.1"] = _TABLE["sse2"]


def tiles(isa: str) -> Tiles | None:
    """None for an instruction set whose tiles are not known here (SME's follow from the vector length)."""
    return _TABLE.get(isa)
