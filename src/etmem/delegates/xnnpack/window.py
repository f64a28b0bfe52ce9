"""The window of a convolution or pooling over its image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from etmem.delegates.xnnpack.graph import Graph, XNode


@dataclass(frozen=True)
class Window:
    """A convolution's or pooling's window over an image."""

    input_height: int
    input_width: int
    height: int
    width: int
    stride_height: int
    stride_width: int
    dilation_height: int
    dilation_width: int
    padding: tuple[int, int, int, int]
    """Top, right, bottom, left."""

    @property
    def taps(self) -> int:
        return self.height * self.width

    @property
    def output(self) -> tuple[int, int]:
        """(height, width) of the result."""
        top, right, bottom, left = self.padding
        high = self.input_height + top + bottom - (self.height - 1) * self.dilation_height - 1
        wide = self.input_width + left + right - (self.width - 1) * self.dilation_width - 1
        return max(0, high // self.stride_height + 1), max(0, wide // self.stride_width + 1)


def window(graph: Graph, node: XNode) -> Window:
    image = graph.values[node.inputs[0]].dims
    get = node.attributes.get
    pooling = "pooling_height" in node.attributes
    return Window(
        input_height=image[1] if len(image) == 4 else 1,
        input_width=image[2] if len(image) == 4 else 1,
        height=max(1, get("pooling_height" if pooling else "kernel_height", 1)),
        width=max(1, get("pooling_width" if pooling else "kernel_width", 1)),
        stride_height=max(1, get("stride_height" if pooling else "subsampling_height", 1)),
        stride_width=max(1, get("stride_width" if pooling else "subsampling_width", 1)),
        dilation_height=max(1, get("dilation_height", 1)),
        dilation_width=max(1, get("dilation_width", 1)),
        padding=(
            get("padding_top", 0), get("padding_right", 0), get("padding_bottom", 0), get("padding_left", 0)
        ),
    )  # fmt: skip


def is_pointwise(node: XNode) -> bool:
    """A convolution that is a matrix multiplication: XNNPACK makes it a fully connected operator."""
    get = node.attributes.get
    return (
        node.kind == "Conv2d"
        and all(
            get(name, 1) == 1 for name in ("kernel_height", "kernel_width", "subsampling_height", "subsampling_width")
        )
        and get("groups", 1) == 1
        and not any(get(f"padding_{side}", 0) for side in ("top", "right", "bottom", "left"))
    )
