"""The tiles that XNNPACK's kernels compute at a time: packed sizes are rounded up to them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum


class Left(Enum):
    """How a kernel wants its left operand, if not as it is: packed, in a workspace."""

    AS_IS = "as is"
    ROWS = "rows"
    """Quantized on the fly: zero point and scale of each row, then its numbers."""
    BLOCKS = "blocks"
    """The same, with inputs in groups of 32."""
    FLOATS = "floats"
    BYTES = "bytes"
    """Quantized beforehand, put into the kernel's order."""


@dataclass(frozen=True)
class Gemm:
    """A matrix multiplication's kernel: ``rows`` x ``columns`` outputs, inputs in groups of ``depth``."""

    rows: int
    columns: int
    depth: int = 1
    row_cases: tuple[int, ...] = (1,)
    """Row counts that have a kernel of their own beside ``rows``."""
    planes: int = 1
    """Of weights of four bits: how many are read from one byte at a time."""
    left: Left = Left.AS_IS
    packed_rows: int = 0
    """Rows that are packed together; 0: as ``rows``."""

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
    """The kernels of one CPU."""

    f32: Gemm
    narrow: Gemm | None
    """For few output channels."""
    f32_image: Gemm
    """Of convolutions."""
    int8: Gemm
    """Weights with a scale for each channel, activations quantized beforehand."""
    int8_tensor: Gemm
    """Weights with one scale."""
    int8_image: Gemm
    int8_dynamic: Gemm
    """Int8 weights, activations quantized on the fly."""
    int8_dynamic_image: Gemm
    int4: Gemm
    """Weights with a scale for each channel, activations quantized on the fly."""
    int4_blocks: Gemm
    """Weights with a scale for each block of inputs."""
    depthwise_f32: tuple[int, int, int, int]
    """Channels per call of a depthwise convolution, for each of ``DEPTHWISE_TAPS``."""
    depthwise_int8: int
    alignment: int
    """Of what is allocated for kernels."""
    operator_bytes: int
    """What the table of kernels in an operator takes more than on x86."""
    context_bytes: int
    """The same of what a run of one needs."""
    cache_bytes: tuple[int, int, int]
    """Second-level cache of such CPUs: the least, the usual, the most."""
    transposed: Tiles | None
    """What transposed convolutions of floats take; None: the same."""
    counted: bool
    """A run has been held against all of it; else the figures follow XNNPACK's tables only."""


DEPTHWISE_TAPS = {"f32": (3, 4, 9, 25), "int8": (3, 9, 25)}
"""Windows, in taps, that depthwise kernels exist for; a smaller one takes the next."""

_X86_CACHE = (256 << 10, 1 << 20, 4 << 20)
_ARM_CACHE = (128 << 10, 256 << 10, 2 << 20)
_ARM_OPERATOR_BYTES = 1280
"""KleidiAI's kernels have up to 32 rows; tables of the others end at 16."""


def _x86(
    f32: Gemm, narrow: Gemm, int8: Gemm, dynamic: Gemm, int4: Gemm, blocks: Gemm, depthwise: tuple[int, int],
    *, image: Gemm | None = None, counted: bool = True,
) -> Tiles:  # fmt: skip
    return Tiles(
        f32, narrow, f32, int8, int8, int8, dynamic, image or dynamic, int4, blocks, (depthwise[0],) * 4, depthwise[1],
        alignment=64, operator_bytes=0, context_bytes=0, cache_bytes=_X86_CACHE, transposed=None, counted=counted,
    )  # fmt: skip


def _rows(rows: int, columns: int, depth: int, planes: int = 1) -> Gemm:
    return Gemm(rows, columns, depth, planes=planes, left=Left.ROWS)


_SSE = (_rows(4, 4, 8), _rows(5, 4, 8, 2))
_TABLE = {
    "avx512": _x86(
        Gemm(7, 32), Gemm(7, 16), Gemm(7, 16, 8), _rows(5, 64, 4), _rows(8, 16, 8, 2), _rows(8, 16, 8, 2), (16, 32),
        image=Gemm(10, 16, 8),
    ),
    "avx2": _x86(
        Gemm(5, 16), Gemm(10, 8, row_cases=(1, 5)), Gemm(3, 8, 8), _rows(4, 8, 8), _rows(4, 8, 8, 2),
        _rows(3, 8, 8, 2), (16, 16),
    ),
    "fma3": _x86(
        Gemm(5, 16), Gemm(10, 8, row_cases=(1, 5)), Gemm(2, 4, 8), *_SSE, _rows(4, 4, 8), (16, 16), counted=False
    ),
    "avx": _x86(Gemm(5, 16), Gemm(5, 8), Gemm(2, 4, 8), *_SSE, _rows(4, 4, 8), (16, 16), counted=False),
    "sse4.1": _x86(Gemm(4, 8), Gemm(4, 2, 4, ()), Gemm(3, 4, 8), *_SSE, _rows(3, 4, 8), (8, 8)),
    "sse2": _x86(
        Gemm(4, 8), Gemm(4, 2, 4, ()), Gemm(3, 4, 8), _rows(4, 4, 8), _rows(4, 4, 8, 2), _rows(4, 4, 8), (8, 8),
        counted=False,
    ),
}  # fmt: skip
"""By instruction set. ``avx512`` stands for CPUs with VNNI, of 2019 and later."""
_X86_CPUS = {
    "avx512skx": _x86(
        Gemm(7, 32), Gemm(7, 16), Gemm(7, 16, 8), _rows(8, 16, 8), _rows(8, 16, 8, 2), _rows(3, 8, 8, 2), (16, 32),
        counted=False,
    ),
    "avx512amx": _x86(
        Gemm(7, 32), Gemm(7, 16), Gemm(16, 64, 4), _rows(16, 64, 4), _rows(16, 64, 4, 2), _rows(8, 16, 8, 2), (16, 32),
        counted=False,
    ),
}  # fmt: skip
"""With AVX-512 and without VNNI, and with AMX on top of it."""


def _arm(
    f32: Gemm, image: Gemm, int8: Gemm, dynamic: Gemm, int4: tuple[Gemm, Gemm], depthwise: int = 8,
    *, counted: bool = False,
) -> Tiles:  # fmt: skip
    return Tiles(
        f32, Gemm(4, 2, row_cases=()), image, int8, int8, int8, dynamic, int8, *int4, (8, 8, depthwise, 8), 16,
        alignment=16, operator_bytes=_ARM_OPERATOR_BYTES, context_bytes=16, cache_bytes=_ARM_CACHE, transposed=None,
        counted=counted,
    )  # fmt: skip


_SIX, _FOUR = Gemm(6, 8, row_cases=(1, 4)), Gemm(4, 8)
_DOT = Gemm(4, 16, 4)
_DOT_DYNAMIC = Gemm(16, 4, 4, left=Left.BLOCKS, packed_rows=4)
_DOT_INT4 = (
    Gemm(16, 4, 16, planes=2, left=Left.BLOCKS, packed_rows=4),
    Gemm(4, 4, 16, planes=2, left=Left.BLOCKS, packed_rows=4),
)
_MATRIX = Gemm(4, 16, 8)
_MATRIX_DYNAMIC = Gemm(16, 4, 8, left=Left.BLOCKS, packed_rows=4)
_MATRIX_INT4 = (
    Gemm(8, 8, 32, planes=2, left=Left.BLOCKS, packed_rows=4),
    Gemm(16, 4, 32, planes=2, left=Left.BLOCKS, packed_rows=4),
)
_PLAIN_INT4 = (_rows(6, 16, 1, 2), _rows(6, 16, 1, 2))
_LATE = Gemm(7, 8, row_cases=(1, 4))
_ARM = {
    "cortex-a53": _arm(_SIX, _SIX, Gemm(4, 16), _rows(4, 16, 1), _PLAIN_INT4, 4, counted=True),
    "cortex-a55": _arm(_SIX, _SIX, _DOT, _DOT_DYNAMIC, _DOT_INT4, 4),
    "cortex-a72": _arm(_FOUR, _FOUR, Gemm(2, 8, 8), _rows(2, 8, 8), _PLAIN_INT4, counted=True),
    "cortex-a73": _arm(Gemm(6, 8), Gemm(6, 8), Gemm(2, 8, 8), _rows(2, 8, 8), _PLAIN_INT4),
    "cortex-a76": _arm(_SIX, _SIX, _DOT, _DOT_DYNAMIC, _DOT_INT4, counted=True),
    "cortex-a77": _arm(_FOUR, _FOUR, _DOT, _DOT_DYNAMIC, _DOT_INT4),
    "cortex-a78": _arm(_LATE, _SIX, _DOT, _DOT_DYNAMIC, _DOT_INT4),
    "cortex-a710": _arm(_LATE, _SIX, _MATRIX, _MATRIX_DYNAMIC, _MATRIX_INT4),
}
"""Of 64-bit ARM, where kernels are chosen by the model."""


def _sme(words: int, *, counted: bool) -> Tiles:
    """Kernels of a CPU with SME whose vectors hold ``words`` 32-bit numbers, beside those of any late one."""
    late = _ARM["cortex-a710"]
    side = 2 * words
    return Tiles(
        f32=Gemm(side, side, left=Left.FLOATS),
        narrow=None,
        f32_image=Gemm(side, side, row_cases=(), left=Left.FLOATS),
        int8=Gemm(side, side, 4, () if counted else (1,), left=Left.BYTES),
        int8_tensor=late.int8,
        int8_image=Gemm(side, side, 4, (), left=Left.BYTES),
        int8_dynamic=Gemm(words, 4 * words, 4, left=Left.BLOCKS),
        int8_dynamic_image=late.int8_dynamic_image,
        int4=Gemm(words, 4 * words, 16, planes=2, left=Left.BLOCKS),
        int4_blocks=late.int4_blocks,
        depthwise_f32=late.depthwise_f32,
        depthwise_int8=late.depthwise_int8,
        alignment=late.alignment,
        operator_bytes=late.operator_bytes,
        context_bytes=late.context_bytes,
        cache_bytes=late.cache_bytes,
        transposed=late,
        counted=counted,
    )


_SME = {"max": _sme(8, counted=True), "sme": _sme(16, counted=False), "sme2": _sme(16, counted=False)}
"""Chips have vectors of 512 bits; the emulator's ``max`` has 256."""
ARM_CPUS = (*_ARM, *_SME)


def tiles(isa: str, cpu: str = "") -> Tiles | None:
    """The kernels of a CPU; of the commonest with that instruction set where the model is not in the table.

    None for an instruction set that XNNPACK's tables are not known for here.
    """
    if isa == "sme":
        return _SME.get(cpu, _SME["sme2"])
    if isa == "neon":
        return _ARM.get(cpu) or replace(_ARM["cortex-a76"], counted=False)
    return _X86_CPUS.get(cpu, _TABLE.get(isa))
