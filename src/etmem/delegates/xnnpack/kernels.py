"""Which kernel an operator takes: by the type and the number of its weights."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from etmem.delegates.xnnpack.graph import DataType

if TYPE_CHECKING:
    from collections.abc import Callable

    from etmem.delegates.xnnpack.graph import Graph, XNode, XValue
    from etmem.delegates.xnnpack.tiles import Gemm, Tiles

INT8 = (DataType.QINT8, DataType.QUINT8, DataType.QCINT8)
_FLOAT_COLUMNS_WASTE = 0.01


def gemm_for(tiles: Tiles, weights: XValue, columns: int, *, image: bool, dynamic: bool = False) -> Gemm | None:
    """The kernel that an operator takes, ``image`` for a convolution's; None for weights of a type not known here."""
    if weights.dtype is DataType.FP32:
        return _float(tiles, columns, image=image)
    if dynamic:
        choose = (_DYNAMIC_IMAGE if image else _DYNAMIC).get(weights.dtype)
        return None if choose is None else choose(tiles)
    if weights.dtype not in INT8:
        return None
    if image:
        return tiles.int8_image
    return tiles.int8 if weights.dtype is DataType.QCINT8 else tiles.int8_tensor


_DYNAMIC: dict[DataType, Callable[[Tiles], Gemm | None]] = {
    DataType.QCINT8: lambda tiles: tiles.int8_dynamic,
    DataType.QCINT4: lambda tiles: tiles.int4,
    DataType.QBINT4: lambda tiles: tiles.int4_blocks,
}
_DYNAMIC_IMAGE: dict[DataType, Callable[[Tiles], Gemm | None]] = {
    DataType.QCINT8: lambda tiles: tiles.int8_dynamic_image
}


def _float(tiles: Tiles, columns: int, *, image: bool) -> Gemm:
    wide, narrow = (tiles.f32_image if image else tiles.f32), tiles.narrow
    if narrow is None:
        return wide
    if wide.columns > columns:
        return narrow
    waste, less = -columns % wide.columns, -columns % narrow.columns
    return narrow if not image and less < waste and waste > _FLOAT_COLUMNS_WASTE * columns else wide


def fully_connected_gemm(graph: Graph, node: XNode, tiles: Tiles) -> Gemm | None:
    weights = graph.values[node.inputs[1]]
    if not weights.dims:
        return None
    return gemm_for(tiles, weights, matrix(weights)[1], image=False, dynamic=is_dynamic(graph, node))


def matrix(weights: XValue) -> tuple[int, int]:
    """(inputs, outputs) of a matrix of weights."""
    depth = weights.dims[-1]
    return depth, prod(weights.dims) // max(1, depth)


def convolution_gemm(graph: Graph, node: XNode, tiles: Tiles) -> Gemm | None:
    weights = graph.values[node.inputs[1]]
    columns = node.attributes.get("group_output_channels", 1)
    if node.kind == "ConvTranspose2d" and weights.dtype is DataType.FP32:
        tiles = tiles.transposed or tiles
    return gemm_for(tiles, weights, columns, image=True, dynamic=is_dynamic(graph, node))


def kernel(graph: Graph, node: XNode, tiles: Tiles) -> Gemm | None:
    """The kernel that an operator with weights takes; None for one that is no matrix multiplication."""
    if node.kind in ("FullyConnected", "DynamicFullyConnected"):
        return fully_connected_gemm(graph, node, tiles)
    return None if node.kind == "DepthwiseConv2d" else convolution_gemm(graph, node, tiles)


def is_dynamic(graph: Graph, node: XNode) -> bool:
    """Whether its activations are quantized on the fly."""
    return node.kind == "DynamicFullyConnected" or graph.values[node.inputs[0]].dtype is DataType.QDINT8
