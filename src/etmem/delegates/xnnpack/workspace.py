"""The workspace: where XNNPACK keeps the values between its operators, planned as XNNPACK plans it.

Largest first, each value goes into the smallest gap that is free for its whole life; operators that can work in
place give their result the input's place.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING

from etmem.delegates.xnnpack.graph import NONE, DataType
from etmem.delegates.xnnpack.kernels import convolution_gemm, fully_connected_gemm, is_dynamic, matrix
from etmem.delegates.xnnpack.left import Sizes, image_operand, left_operand, stacked_operand
from etmem.delegates.xnnpack.lowering import BINARY, UNARY
from etmem.delegates.xnnpack.packing import EXTRA_BYTES, column_bytes, extra_bytes, packed_matrix, round_up
from etmem.delegates.xnnpack.window import window

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from etmem.delegates.xnnpack.graph import Graph, XNode, XValue
    from etmem.delegates.xnnpack.tiles import Tiles

_QUANTIZATION_BYTES = 8
"""Zero point and scale."""
_EXTRA_PARAMETERS = 15
_IN_PLACE = UNARY | BINARY | {"Copy", "Softmax", "StaticReshape"}


@dataclass(frozen=True)
class _Place:
    first: int
    last: int
    bytes: int


def workspace_bytes(graph: Graph, tiles: Tiles, threads: int) -> Sizes:
    """Bytes of the workspace that a lowered graph needs; 0 where nothing is internal."""
    values, nodes = dict(graph.values), graph.nodes
    places = {
        number: _Place(first, last, size)
        for number, (first, last, size) in _lives(values, nodes, tiles.alignment).items()
    }  # fmt: skip
    for node, result in _reused(values, nodes, places):
        root = places[node]
        places[node] = replace(root, last=max(root.last, result.last))
    held = [place for place in places.values() if place.bytes]
    needs = [operator_workspace(graph, node, tiles, threads) for node in nodes]

    def arena(sizes: Iterable[int]) -> int:
        spaces = [_Place(at, at, _round(size, tiles.alignment)) for at, size in enumerate(sizes) if size]
        found = _arena([*held, *spaces])
        return found + 2 * EXTRA_BYTES if found else 0

    usual = arena(need.usual for need in needs)
    if all(need.low == need.high for need in needs):
        return Sizes(usual, usual, usual)
    ends = [arena(need.low for need in needs), arena(need.high for need in needs), usual]
    return Sizes(usual, min(ends), max(ends))


def _internal(value: XValue) -> bool:
    return not value.external and value.constant is None


def _round(size: int, alignment: int) -> int:
    return round_up(round_up(size, EXTRA_BYTES), alignment)


def value_bytes(value: XValue, alignment: int) -> int:
    """Bytes of a value in the workspace; one that is quantized on the fly has its parameters behind it."""
    size = _round(value.nbytes, alignment)
    if value.dtype is DataType.QDINT8:
        rows = prod(value.dims[: max(0, len(value.dims) - value.nonbatch_dims)])
        size += _round((rows + _EXTRA_PARAMETERS) * _QUANTIZATION_BYTES, alignment)
        size += _round((rows + _EXTRA_PARAMETERS) * 4, alignment)
    return size


def _lives(
    values: dict[int, XValue], nodes: Sequence[XNode], alignment: int
) -> dict[int, tuple[int, int, int]]:  # fmt: skip
    """(first operator, last operator, bytes) of each internal value that is used."""
    found: dict[int, tuple[int, int, int]] = {}
    for time, node in enumerate(nodes):
        for number in (*node.inputs, *node.outputs):
            if number != NONE and _internal(values[number]):
                first = found[number][0] if number in found else time
                found[number] = (first, time, value_bytes(values[number], alignment))
    return found


def _reused(
    values: dict[int, XValue], nodes: Sequence[XNode], places: dict[int, _Place]
) -> Iterable[tuple[int, _Place]]:
    """(value whose place is reused, what now lives there); the result's own place becomes empty."""
    consumers: dict[int, int] = {}
    for node in nodes:
        for number in node.inputs:
            consumers[number] = consumers.get(number, 0) + 1
    roots: dict[int, int] = {}
    for node in nodes:
        if node.kind not in _IN_PLACE or node.outputs[0] not in places:
            continue
        result = node.outputs[0]
        source = next(
            (
                number
                for number in node.inputs
                if number in places and consumers.get(number) == 1 and values[number].nbytes == values[result].nbytes
            ),
            None,
        )
        if source is None or consumers.get(result) != 1:
            continue
        root = roots.get(source, source)
        roots[result] = root
        yield root, places[result]
        places[result] = replace(places[result], bytes=0)


def operator_workspace(graph: Graph, node: XNode, tiles: Tiles, threads: int) -> Sizes:
    """Bytes that an operator needs while it runs: operands that are packed each time."""
    values = graph.values
    if node.kind in ("FullyConnected", "DynamicFullyConnected") and values[node.inputs[1]].constant is not None:
        return _fully_connected(graph, node, tiles, threads)
    if node.kind in ("BatchMatrixMultiply", "FullyConnected"):
        return _products(graph, node, tiles, threads)
    if node.kind in ("Conv2d", "ConvTranspose2d"):
        gemm = convolution_gemm(graph, node, tiles)
        depth = node.attributes.get("group_input_channels", 1)
        return Sizes.of(image_operand(gemm, depth, window(graph, node).taps, threads) if gemm is not None else 0)
    if node.kind == "GlobalAvgPooling2d":
        return Sizes.of(values[node.outputs[0]].elements * 4 + EXTRA_BYTES)
    return Sizes.of(0)


def _fully_connected(graph: Graph, node: XNode, tiles: Tiles, threads: int) -> Sizes:
    gemm = fully_connected_gemm(graph, node, tiles)
    if gemm is None:
        return Sizes.of(0)
    activations, weights = graph.values[node.inputs[0]], graph.values[node.inputs[1]]
    depth, columns = matrix(weights)
    column = column_bytes(gemm, weights, depth, 1, extra_bytes(weights, dynamic=is_dynamic(graph, node)))
    rows = activations.elements // max(1, depth)
    return left_operand(gemm, rows, depth, columns, column, threads, tiles.cache_bytes)


def _products(graph: Graph, node: XNode, tiles: Tiles, threads: int) -> Sizes:
    """Of weights that are no constants, and of batches of products: both operands are packed."""
    left, right = graph.values[node.inputs[0]], graph.values[node.inputs[1]]
    if right.dtype is not DataType.FP32 or right.constant is not None or len(right.dims) < 2 or len(left.dims) < 2:
        return Sizes.of(0)
    transposed = node.kind == "FullyConnected" or node.attributes.get("flags", 0) & 1
    depth, columns = (right.dims[-1], right.dims[-2]) if transposed else (right.dims[-2], right.dims[-1])
    packed = prod(right.dims[:-2]) * packed_matrix(tiles.f32, right, columns, depth, 1, 0)
    rows = left.dims[-2]
    more = stacked_operand(tiles.f32, prod(left.dims[:-2]), rows, depth, threads)
    return Sizes.of(round_up(packed, tiles.alignment) + more if more else packed)


def _arena(places: Sequence[_Place]) -> int:
    """The size of an arena that holds all: the largest first, each in the smallest gap that takes it."""
    ordered = sorted(places, key=lambda place: -place.bytes)
    offsets: list[int] = []
    size = 0
    for index, place in enumerate(ordered):
        live = sorted(
            (offsets[other], offsets[other] + ordered[other].bytes)
            for other in range(index)
            if ordered[other].first <= place.last and place.first <= ordered[other].last
        )
        offset = _gap(live, place.bytes)
        offsets.append(offset)
        size = max(size, offset + place.bytes)
    return size


def _gap(live: Sequence[tuple[int, int]], size: int) -> int:
    best, best_gap, end = None, 0, 0
    for start, stop in live:
        if start - end >= size and (best is None or start - end < best_gap):
            best, best_gap = end, start - end
        end = max(end, stop)
    return end if best is None else best
