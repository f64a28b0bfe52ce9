"""The tables of pointers that convolutions keep: one for each output pixel and each tap of the window.

Kernels compute ``tile`` pixels per call, so the pixels are rounded up to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_WINDOWS = (2, 3, 4, 5, 7, 9, 11)
_STRIDES = (1, 2, 4, 8, 16, 32)


@dataclass(frozen=True, order=True)
class Indirection:
    """One convolution's table."""

    height: int
    """Of the output."""
    width: int
    taps: int

    def pointers(self, tile: int) -> int:
        return -(-self.height * self.width // tile) * tile * self.taps


def indirection(pointers: int, tile: int, images: Iterable[tuple[int, int]]) -> Indirection | None:
    """The one convolution that has so many pointers.

    ``images`` are the (height, width) of the tensors around the delegate; what is inside of it may be smaller
    by a power of two. Windows are square. None where no convolution fits, or several do.
    """
    outputs = {(-(-height // s), -(-width // s)) for height, width in images for s in _STRIDES}
    fitting = {
        found
        for height, width in outputs
        for window in _WINDOWS
        if (found := Indirection(height, width, window * window)).pointers(tile) == pointers
    }
    return fitting.pop() if len(fitting) == 1 else None
