"""The sizes of XNNPACK's own structures, as executorch 1.5.1's library allocates them on 64-bit machines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from etmem.delegates.estimating import BlobBlock, Life, Sureness
from etmem.model.words import Category

if TYPE_CHECKING:
    from collections.abc import Iterator

    from etmem.delegates.xnnpack.graph import Graph, XNode, XValue
    from etmem.delegates.xnnpack.tiles import Gemm, Tiles

_VALUE, _NODE = 224, 232
"""Of the graph that is built and dropped in init."""
_GROWTH = 64
"""Values and nodes are allocated in steps of at least so many."""
_COMPILE_PER_VALUE = 120
_RUNTIME, _RUNTIME_VALUE, _RUNTIME_NODE, _TIMES = 96, 160, 240, 80
_EXTERNAL, _NAME = 24, 24
_PLAN = 32
"""Per value and per node, while the workspace is planned."""
PROCESS = 1888
"""Once: the shared workspace's handle and the thread pool, for two threads."""
_THREAD = 352 + 448
OPERATOR = 520
_UNCOUNTED = ("ArgMaxPooling2d", "PReLU", "ScaledDotProductAttention")
_KERNEL_TABLES = ("FullyConnected", "DynamicFullyConnected", "Conv2d", "BatchMatrixMultiply")
_TABLES_ALONE = ("ConvTranspose2d", "DepthwiseConv2d")
"""Operators that keep a table of kernels by row count, with and without what a run of one needs."""
_IMAGE_CONTEXT = 408


@dataclass(frozen=True)
class _Sizes:
    aligned: int
    """Aligned allocations in xnn_create_...: counted with the packed weights."""
    other: int


_UNARY, _COPY, _MOVE = _Sizes(OPERATOR, 176), _Sizes(0, OPERATOR + 176), _Sizes(0, OPERATOR + 88)
_OPERATORS = {
    "FullyConnected": _Sizes(OPERATOR + 288 + 688, 176 + 224),
    "DynamicFullyConnected": _Sizes(OPERATOR + 288 + 688, 176 + 224),
    "Conv2d": _Sizes(OPERATOR + 264 + _IMAGE_CONTEXT, 264 + 224),
    "ConvTranspose2d": _Sizes(OPERATOR + 264, 264 + 224),
    "DepthwiseConv2d": _Sizes(OPERATOR + 264 + 336, 264 + 224),
    "BatchMatrixMultiply": _Sizes(OPERATOR + 288 + 688, 264),
    "Lookup": _Sizes(OPERATOR + 256, 176 + 256),
    "MaxPooling2d": _Sizes(OPERATOR, 88 + 224),
    "AvgPooling2d": _Sizes(OPERATOR, 88 + 224),
    "GlobalAvgPooling2d": _Sizes(OPERATOR + 272, 88 + 40),
    "StaticResizeBilinear2D": _Sizes(OPERATOR, 176 + 224),
    "StaticReshape": _COPY,
    "Copy": _COPY,
    "StaticTranspose": _MOVE,
    "StaticSlice": _MOVE,
    "StaticConstantPad": _MOVE,
    "Softmax": _MOVE,
    **dict.fromkeys(
        ("Add", "Subtract", "Multiply", "Div", "Minimum", "Maximum", "PReLU"), _Sizes(OPERATOR, 88 + 40)
    ),
}  # fmt: skip


def operator_bytes(node: XNode, tiles: Tiles, *, on_the_fly: bool) -> Iterator[BlobBlock]:
    """The structures of one operator; a concatenation is one for each input. ``on_the_fly``: it quantizes by row."""
    sure = Sureness.EXACT if tiles.counted and node.kind not in _UNCOUNTED else Sureness.COMPUTED
    found = _COPY if on_the_fly else _OPERATORS.get(node.kind, _UNARY)
    if node.kind.startswith("Concatenate"):
        found = _Sizes(0, _COPY.other * len(node.inputs))
    size = found.aligned
    if node.kind in _KERNEL_TABLES:
        size += tiles.operator_bytes + tiles.context_bytes
    elif node.kind in _TABLES_ALONE:
        size += tiles.operator_bytes
    if size:
        yield BlobBlock(Category.PACKED_WEIGHTS, size, Life.LOADED, sure, f"{node.kind} operator")
    if found.other:
        yield BlobBlock(Category.METADATA, found.other, Life.LOADED, Sureness.COMPUTED, f"{node.kind} operator")


def whole_image_context(tiles: Tiles) -> BlobBlock:
    """What a transposed convolution keeps where it is not taken apart by its strides."""
    sure = Sureness.EXACT if tiles.counted else Sureness.COMPUTED
    return BlobBlock(
        Category.PACKED_WEIGHTS, _IMAGE_CONTEXT + tiles.context_bytes, Life.LOADED, sure, "ConvTranspose2d operator"
    )


_PROBE_STRUCTURES = 1900
_PROBE_DEPTH, _PROBE_TAPS = 32, 415
"""Inputs of a made-up matrix, and inputs and taps of a made-up transposed convolution, which has so many outputs:"""
_PROBE_OUTPUTS = 48
_FLOAT_BITS = 32


def probe(node: XNode, weights: XValue, gemm: Gemm | None, tiles: Tiles, *, whole: bool) -> Iterator[BlobBlock]:
    """The first operator of a kind packs made-up weights, to name the packing by what comes out.

    ``gemm`` is its kernel, ``whole`` whether it is not taken apart by its strides.
    """
    numbers = 0
    if gemm is not None and node.kind == "ConvTranspose2d":
        wide = (tiles.transposed or tiles).f32_image.columns
        outputs = _PROBE_OUTPUTS if gemm.columns >= wide or weights.dtype.bits < _FLOAT_BITS else wide - 1
        numbers = _PROBE_TAPS * (outputs + -(-outputs // gemm.columns) * gemm.columns)
    elif gemm is not None and node.kind in ("FullyConnected", "DynamicFullyConnected"):
        numbers = 2 * gemm.columns * max(gemm.depth, _PROBE_DEPTH)
    size = numbers * weights.dtype.bits // 8 + _PROBE_STRUCTURES + (tiles.operator_bytes if gemm else 0)
    name = f"{node.kind} {weights.dtype.name} {gemm} {whole}"
    yield BlobBlock(Category.METADATA, size, Life.MOMENT, Sureness.COMPUTED, "probe", once=name)


def bookkeeping(graph: Graph, *, profiled: bool) -> Iterator[BlobBlock]:
    """What is allocated for the graph as a whole."""
    values, nodes = len(graph.values), len(graph.nodes)
    per_node = _RUNTIME_NODE + (_TIMES + _NAME if profiled else 0)
    kept = _RUNTIME + values * _RUNTIME_VALUE + nodes * per_node + graph.externals * _EXTERNAL
    yield BlobBlock(Category.METADATA, kept, Life.LOADED, Sureness.COMPUTED, "runtime")
    building = _capacity(values, graph.externals) * _VALUE + _capacity(nodes, 0) * _NODE + values * _COMPILE_PER_VALUE
    yield BlobBlock(Category.METADATA, building, Life.INIT, Sureness.COMPUTED, "graph")
    yield BlobBlock(Category.METADATA, (values + nodes) * _PLAN, Life.FIRST, Sureness.COMPUTED, "planning")


def process(threads: int) -> BlobBlock:
    """What the first delegate of a process makes for all."""
    size = PROCESS + _THREAD * (threads - 2)
    return BlobBlock(Category.METADATA, max(size, 0), Life.LOADED, Sureness.COMPUTED, "thread pool")


def _capacity(count: int, begin: int) -> int:
    capacity = begin
    while capacity < count:
        capacity = max(min(capacity * 2, capacity + 512), capacity + _GROWTH)
    return capacity
