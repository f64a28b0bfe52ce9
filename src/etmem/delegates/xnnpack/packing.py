"""What an operator's weights take when they are packed, and the pointer tables that it keeps."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from etmem.delegates.xnnpack.graph import NONE, DataType
from etmem.delegates.xnnpack.tiles import DEPTHWISE_TAPS

if TYPE_CHECKING:
    from etmem.delegates.xnnpack.graph import Graph, XNode, XValue
    from etmem.delegates.xnnpack.tiles import Gemm, Tiles

ALIGNMENT = 64
EXTRA_BYTES = 16
"""Kernels may read so far beyond the end of a row."""
_BIAS_BYTES = 4
_INT8 = (DataType.QINT8, DataType.QUINT8, DataType.QCINT8)
_INT4 = (DataType.QCINT4, DataType.QBINT4)
_FLOAT_COLUMNS_WASTE = 0.01


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


def round_up(count: int, step: int) -> int:
    return -(-count // step) * step


def window(graph: Graph, node: XNode) -> Window:
    image = graph.values[node.inputs[0]].dims
    get = node.attributes.get
    pooling = "pooling_height" in node.attributes
    return Window(
        input_height=image[1] if len(image) == 4 else 1,
        input_width=image[2] if len(image) == 4 else 1,
        height=get("pooling_height" if pooling else "kernel_height", 1),
        width=get("pooling_width" if pooling else "kernel_width", 1),
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


def gemm_for(tiles: Tiles, weights: XValue, columns: int, *, convolution: bool, dynamic: bool = False) -> Gemm | None:
    """The kernel that an operator takes; None for a type of weights that is not known here."""
    if weights.dtype in _INT8:
        return tiles.int8_dynamic if dynamic else tiles.int8
    if weights.dtype in _INT4:
        return tiles.int4
    if weights.dtype is not DataType.FP32:
        return None
    wide, narrow = tiles.f32, tiles.f32_narrow
    if wide.columns > columns:
        return narrow
    waste, less = -columns % wide.columns, -columns % narrow.columns
    if not convolution and less < waste and waste > _FLOAT_COLUMNS_WASTE * columns:
        return narrow
    return wide


def extra_bytes(weights: XValue, *, dynamic: bool) -> int:
    """Per output channel, beside weights and bias: scales."""
    if dynamic:
        return 4 if weights.dtype is DataType.QBINT4 else 8
    return 4 if weights.dtype in (DataType.QINT8, DataType.QCINT8) else 0


def packed_matrix(gemm: Gemm, weights: XValue, columns: int, depth: int, taps: int, extra: int) -> int:
    """Bytes of packed weights: every column has its bias, its inputs rounded up, and its scales."""
    rows = round_up(depth, gemm.depth * (2 if weights.dtype.bits == 4 else 1))
    blocks = 2 * (depth // weights.group_size) if weights.group_size else 0
    return round_up(columns, gemm.columns) * (taps * rows * weights.dtype.bits // 8 + _BIAS_BYTES + extra + blocks)


def aligned(count: int) -> int:
    return round_up(count, ALIGNMENT)


def fully_connected(graph: Graph, node: XNode, tiles: Tiles) -> int | None:
    """Bytes of the packed weights; None where their type is not known here."""
    weights = graph.values[node.inputs[1]]
    if not weights.dims:
        return None
    dynamic = node.kind == "DynamicFullyConnected" or _is_dynamic(graph, node)
    depth = weights.dims[-1]
    columns = prod(weights.dims) // max(1, depth)
    gemm = gemm_for(tiles, weights, columns, convolution=False, dynamic=dynamic)
    if gemm is None:
        return None
    return aligned(packed_matrix(gemm, weights, columns, depth, 1, extra_bytes(weights, dynamic=dynamic)))


def convolution(graph: Graph, node: XNode, tiles: Tiles) -> tuple[int, int] | None:
    """(bytes of the packed weights, bytes of the pointer table); None where the type is not known here."""
    weights = graph.values[node.inputs[1]]
    get = node.attributes.get
    depth, columns, groups = get("group_input_channels", 1), get("group_output_channels", 1), get("groups", 1)
    view = window(graph, node)
    gemm = gemm_for(tiles, weights, columns, convolution=True)
    if gemm is None:
        return None
    extra = extra_bytes(weights, dynamic=_is_dynamic(graph, node))
    packed = aligned(packed_matrix(gemm, weights, columns, depth, view.taps, extra) * groups)
    height, width = view.output
    return packed, round_up(height * width, gemm.rows_for(height * width)) * view.taps


def depthwise(graph: Graph, node: XNode, tiles: Tiles) -> tuple[int, int] | None:
    """The same for a depthwise convolution; None where no depthwise kernel takes the window."""
    weights = graph.values[node.inputs[1]]
    view = window(graph, node)
    name, channels = ("int8", tiles.depthwise_int8) if weights.dtype in _INT8 else ("f32", tiles.depthwise_f32)
    tile = next((taps for taps in DEPTHWISE_TAPS[name] if taps >= view.taps), None)
    if tile is None or (name == "f32" and weights.dtype is not DataType.FP32):
        return None
    groups = round_up(node.attributes.get("groups", 1), channels)
    size = groups * (
        tile * weights.dtype.bits // 8 + _BIAS_BYTES + extra_bytes(weights, dynamic=_is_dynamic(graph, node))
    )
    height, width = view.output
    step = view.stride_width if view.dilation_width == 1 else view.width
    per_row = view.taps + (width - 1) * min(step, view.width) * view.height
    pointers = height * per_row + tile - view.taps
    return aligned(size), pointers


def pooling(graph: Graph, node: XNode) -> int:
    """Pointers of a pooling's table. Averages keep rows at the padded edges and one between them only."""
    view = window(graph, node)
    height, width = view.output
    step = min(view.stride_width, view.width) if view.dilation_width == 1 else view.width
    per_row = view.taps + (width - 1) * step * view.height
    if node.kind == "AvgPooling2d":
        top, _, bottom, _ = view.padding
        height = -(-top // view.stride_height) + -(-bottom // view.stride_height) + 1
    return height * per_row + view.taps - 1


def _is_dynamic(graph: Graph, node: XNode) -> bool:
    return graph.values[node.inputs[0]].dtype is DataType.QDINT8


def zero_buffer(graph: Graph, node: XNode, tiles: Tiles) -> int:
    """Bytes of the row of zeros that padding reads from; 0 without padding."""
    if not any(window(graph, node).padding):
        return 0
    activations = graph.values[node.inputs[0]]
    channels = node.attributes.get("group_input_channels", 1)
    gemm = gemm_for(
        tiles, graph.values[node.inputs[1]], node.attributes.get("group_output_channels", 1), convolution=True
    )
    if gemm is not None:
        channels = round_up(channels, gemm.depth)
    if node.kind == "DepthwiseConv2d":
        tile = tiles.depthwise_f32 if activations.dtype is DataType.FP32 else tiles.depthwise_int8
        channels = round_up(node.attributes.get("groups", 1), tile)
    return EXTRA_BYTES + channels * activations.dtype.bits // 8


def bias_of(node: XNode) -> int | None:
    return node.inputs[2] if len(node.inputs) > 2 and node.inputs[2] != NONE else None
