"""The left operands that kernels want packed: in the workspace, whole or a tile for each thread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from etmem.delegates.xnnpack.packing import round_up
from etmem.delegates.xnnpack.tiles import Left

if TYPE_CHECKING:
    from etmem.delegates.xnnpack.tiles import Gemm

_PARAMETERS = 8
"""Zero point and scale of a row."""
_WORD, _BLOCK = 4, 32
_LINE = 64
"""Bytes of a cache line."""


@dataclass(frozen=True)
class Sizes:
    """Bytes, and what they may be where that follows from the machine's caches."""

    usual: int
    low: int
    high: int

    @classmethod
    def of(cls, size: int) -> Sizes:
        return cls(size, size, size)


def packed_bytes(gemm: Gemm, rows: int, depth: int) -> int:
    """Of so many rows of ``depth`` inputs; 0 for a kernel that takes them as they are."""
    rows = round_up(rows, 1 if rows == 1 and 1 in gemm.row_cases else gemm.packed_rows or gemm.rows)
    if gemm.left is Left.ROWS:
        return rows * (round_up(round_up(depth, gemm.depth), _WORD) + _PARAMETERS)
    if gemm.left is Left.BLOCKS:
        return rows * (round_up(depth, _BLOCK) + _PARAMETERS)
    if gemm.left is Left.FLOATS:
        return rows * depth * 4
    return rows * round_up(depth, gemm.depth) if gemm.left is Left.BYTES else 0


def left_operand(
    gemm: Gemm, rows: int, depth: int, columns: int, column_bytes: int, threads: int, caches: tuple[int, int, int]
) -> Sizes:
    """A tile for each thread where a tile's whole row of results stays in the second-level cache, else all rows.

    ``caches`` are the least, the usual and the most bytes that it may have.
    """
    if gemm.left is Left.AS_IS or rows == 0:
        return Sizes.of(0)
    single = rows == 1 and 1 in gemm.row_cases
    if single and gemm.left in (Left.FLOATS, Left.BYTES):
        return Sizes.of(0)
    tile = 1 if single else gemm.rows
    whole, each = packed_bytes(gemm, rows, depth), packed_bytes(gemm, tile, depth)
    if threads * tile > round_up(rows, tile):
        return Sizes.of(whole)
    used = min(gemm.rows, rows)
    lines = -(-used * -(-each // tile) // _LINE) - (-columns * column_bytes // _LINE) + used * -(-columns * 4 // _LINE)
    parts = threads * each
    least, usual, most = (parts if lines * _LINE <= size else whole for size in caches)
    return Sizes(usual, min(least, most), max(least, most))


def stacked_operand(gemm: Gemm, batch: int, rows: int, depth: int, threads: int) -> int:
    """Of a batch of products: all of them, unless there are more than the threads take at once."""
    if gemm.left is Left.AS_IS or (rows == 1 and 1 in gemm.row_cases):
        return 0
    if threads * gemm.rows > round_up(batch, gemm.rows):
        return batch * packed_bytes(gemm, rows, depth)
    return threads * packed_bytes(gemm, gemm.rows, depth)


def image_operand(gemm: Gemm, depth: int, taps: int, threads: int) -> int:
    """Of a convolution: a tile of pixels with all taps of each, for each thread."""
    if gemm.left is Left.FLOATS:
        return threads * gemm.rows * taps * depth * 4
    return threads * gemm.rows * taps * round_up(depth, gemm.depth) if gemm.left is Left.BYTES else 0
