"""What an operator's weights take when they are packed, and the pointer tables that it keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from etmem.delegates.xnnpack.graph import NONE, DataType
from etmem.delegates.xnnpack.kernels import INT8, convolution_gemm, fully_connected_gemm, is_dynamic, matrix
from etmem.delegates.xnnpack.tiles import DEPTHWISE_TAPS, Left
from etmem.delegates.xnnpack.window import Window, window

if TYPE_CHECKING:
    from etmem.delegates.xnnpack.graph import Graph, XNode, XValue
    from etmem.delegates.xnnpack.tiles import Gemm, Tiles

EXTRA_BYTES = 16
"""Kernels may read so far beyond the end of a row."""
_BIAS_BYTES = 4
_BLOCKS_OF = 32
"""Inputs that KleidiAI's kernels take at a time."""


def round_up(count: int, step: int) -> int:
    return -(-count // step) * step


def extra_bytes(weights: XValue, *, dynamic: bool) -> int:
    """Per output channel, beside weights and bias: scales."""
    if dynamic:
        return 4 if weights.dtype is DataType.QBINT4 else 8
    return 4 if weights.dtype in (DataType.QINT8, DataType.QCINT8) else 0


def column_bytes(gemm: Gemm, weights: XValue, depth: int, taps: int, extra: int) -> int:
    """One column of packed weights: its inputs rounded up, bias and scales."""
    step = gemm.depth * (gemm.planes if weights.dtype.bits == 4 else 1)
    if gemm.left is Left.BLOCKS:
        step, extra = _BLOCKS_OF, extra if weights.group_size else 8
    rows = round_up(round_up(depth, gemm.planes), step)
    blocks = 2 * (depth // weights.group_size) if weights.group_size else 0
    return taps * rows * weights.dtype.bits // 8 + _BIAS_BYTES + extra + blocks


def packed_matrix(gemm: Gemm, weights: XValue, columns: int, depth: int, taps: int, extra: int) -> int:
    return round_up(columns, gemm.columns) * column_bytes(gemm, weights, depth, taps, extra)


def fully_connected(graph: Graph, node: XNode, tiles: Tiles) -> int | None:
    """Bytes of the packed weights; None where their type is not known here."""
    weights = graph.values[node.inputs[1]]
    gemm = fully_connected_gemm(graph, node, tiles)
    if gemm is None:
        return None
    depth, columns = matrix(weights)
    extra = extra_bytes(weights, dynamic=is_dynamic(graph, node))
    return round_up(packed_matrix(gemm, weights, columns, depth, 1, extra), tiles.alignment)


def convolution(graph: Graph, node: XNode, tiles: Tiles) -> tuple[int, int] | None:
    """(bytes of the packed weights, pointers in its table); None where the type is not known here."""
    weights = graph.values[node.inputs[1]]
    get = node.attributes.get
    depth, columns, groups = get("group_input_channels", 1), get("group_output_channels", 1), get("groups", 1)
    gemm = convolution_gemm(graph, node, tiles)
    if gemm is None:
        return None
    extra = extra_bytes(weights, dynamic=is_dynamic(graph, node))
    view = window(graph, node)
    size = packed_matrix(gemm, weights, columns, depth, view.taps, extra)
    if node.kind != "ConvTranspose2d":
        height, width = view.output
        return round_up(size * groups, tiles.alignment), _pointers(gemm, height * width) * view.taps
    if not is_whole(graph, node, tiles):
        # Every offset within a stride is a convolution of its own, with the taps that fall on it and its own bias.
        subkernels = view.stride_height * view.stride_width
        size += round_up(columns, gemm.columns) * (_BIAS_BYTES + extra) * (subkernels - 1)
    return round_up(size * groups, tiles.alignment), _transposed_pointers(
        graph, node, view, gemm, whole=is_whole(graph, node, tiles)
    )


def is_whole(graph: Graph, node: XNode, tiles: Tiles) -> bool:
    """Whether a transposed convolution is one operator for all offsets within its strides."""
    gemm = convolution_gemm(graph, node, tiles)
    return gemm is None or gemm.left is not Left.AS_IS or not _has_subkernels(window(graph, node))


def _pointers(gemm: Gemm, pixels: int) -> int:
    return round_up(pixels, gemm.rows_for(pixels))


def _has_subkernels(view: Window) -> bool:
    return (
        max(view.stride_height, view.stride_width) > 1
        and max(view.dilation_height, view.dilation_width) == 1
        and view.stride_height <= view.height
        and view.stride_width <= view.width
    )


def _transposed_pointers(graph: Graph, node: XNode, view: Window, gemm: Gemm, *, whole: bool) -> int:
    output = graph.values[node.outputs[0]].dims
    images, height, width = (output[0], output[1], output[2]) if len(output) == 4 else (1, 1, 1)
    if whole:
        return _pointers(gemm, height * width) * view.taps
    row = round_up(-(-width // view.stride_width), gemm.rows_for(images))
    return view.taps * height * view.stride_width * row


def depthwise(graph: Graph, node: XNode, tiles: Tiles) -> tuple[int, int] | None:
    """The same for a depthwise convolution; None where no depthwise kernel takes the window."""
    weights = graph.values[node.inputs[1]]
    view = window(graph, node)
    name = "int8" if weights.dtype in INT8 else "f32"
    tile = next((taps for taps in DEPTHWISE_TAPS[name] if taps >= view.taps), None)
    if tile is None or (name == "f32" and weights.dtype is not DataType.FP32):
        return None
    groups = round_up(node.attributes.get("groups", 1), _depthwise_channels(tiles, name, tile))
    size = groups * (
        tile * weights.dtype.bits // 8 + _BIAS_BYTES + extra_bytes(weights, dynamic=is_dynamic(graph, node))
    )
    height, width = view.output
    step = view.stride_width if view.dilation_width == 1 else view.width
    per_row = view.taps + (width - 1) * min(step, view.width) * view.height
    pointers = height * per_row + tile - view.taps
    return round_up(size, tiles.alignment), pointers


def _depthwise_channels(tiles: Tiles, name: str, tile: int) -> int:
    return tiles.depthwise_int8 if name == "int8" else tiles.depthwise_f32[DEPTHWISE_TAPS[name].index(tile)]


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


def zero_buffer(graph: Graph, node: XNode, tiles: Tiles) -> int:
    """Bytes of the row of zeros that padding reads from; 0 without padding."""
    view = window(graph, node)
    if node.kind != "ConvTranspose2d" and not any(view.padding):
        return 0
    activations = graph.values[node.inputs[0]]
    channels = node.attributes.get("group_input_channels", 1)
    if node.kind == "DepthwiseConv2d":
        name = "f32" if activations.dtype is DataType.FP32 else "int8"
        tile = next((taps for taps in DEPTHWISE_TAPS[name] if taps >= view.taps), DEPTHWISE_TAPS[name][-1])
        channels = round_up(node.attributes.get("groups", 1), _depthwise_channels(tiles, name, tile))
    else:
        gemm = convolution_gemm(graph, node, tiles)
        channels = round_up(channels, gemm.depth) if gemm is not None else channels
    return EXTRA_BYTES + channels * activations.dtype.bits // 8


def bias_of(node: XNode) -> int | None:
    return node.inputs[2] if len(node.inputs) > 2 and node.inputs[2] != NONE else None
