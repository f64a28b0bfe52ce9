"""The sizes of XNNPACK's own structures, as executorch 1.5.1's library allocates them on 64-bit machines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from etmem.delegates.estimating import BlobBlock, Life, Sureness
from etmem.model.words import Category

if TYPE_CHECKING:
    from collections.abc import Iterator

    from etmem.delegates.xnnpack.graph import Graph, XNode

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
_COUNTED_ON = ("avx512", "avx2")
"""Where these sizes were counted; elsewhere structures may be padded differently."""
_UNCOUNTED = ("ConvTranspose2d", "AvgPooling2d", "ArgMaxPooling2d", "StaticResizeBilinear2D", "PReLU")


@dataclass(frozen=True)
class _Sizes:
    aligned: int
    """Aligned allocations in xnn_create_...: counted with the packed weights."""
    other: int


_UNARY, _COPY, _MOVE = _Sizes(OPERATOR, 176), _Sizes(0, OPERATOR + 176), _Sizes(0, OPERATOR + 88)
_OPERATORS = {
    "FullyConnected": _Sizes(OPERATOR + 288 + 688, 176 + 224),
    "DynamicFullyConnected": _Sizes(OPERATOR + 288 + 688, 176 + 224),
    "Conv2d": _Sizes(OPERATOR + 264 + 408, 264 + 224),
    "ConvTranspose2d": _Sizes(OPERATOR + 264 + 408, 264 + 224),
    "DepthwiseConv2d": _Sizes(OPERATOR + 264 + 336, 264 + 224),
    "BatchMatrixMultiply": _Sizes(OPERATOR + 288 + 688, 264),
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


def operator_bytes(node: XNode, isa: str) -> Iterator[BlobBlock]:
    """The structures of one operator; a concatenation is one for each input."""
    sure = Sureness.EXACT if isa in _COUNTED_ON and node.kind not in _UNCOUNTED else Sureness.COMPUTED
    found = _OPERATORS.get(node.kind, _UNARY)
    if node.kind.startswith("Concatenate"):
        found = _Sizes(0, _COPY.other * len(node.inputs))
    if found.aligned:
        yield BlobBlock(Category.PACKED_WEIGHTS, found.aligned, Life.LOADED, sure, f"{node.kind} operator")
    if found.other:
        yield BlobBlock(Category.METADATA, found.other, Life.LOADED, Sureness.COMPUTED, f"{node.kind} operator")


def bookkeeping(graph: Graph, *, profiled: bool) -> Iterator[BlobBlock]:
    """What is allocated for the graph as a whole."""
    values, nodes = len(graph.values), len(graph.nodes)
    per_node = _RUNTIME_NODE + (_TIMES + _NAME if profiled else 0)
    kept = _RUNTIME + values * _RUNTIME_VALUE + nodes * per_node + graph.externals * _EXTERNAL
    yield BlobBlock(Category.METADATA, kept, Life.LOADED, Sureness.COMPUTED, "runtime")
    building = _capacity(values, graph.externals) * _VALUE + _capacity(nodes, 0) * _NODE + values * _COMPILE_PER_VALUE
    yield BlobBlock(Category.METADATA, building, Life.INIT, Sureness.COMPUTED, "graph")
    yield BlobBlock(Category.METADATA, (values + nodes) * _PLAN, Life.EXECUTE, Sureness.COMPUTED, "planning")


def process(threads: int) -> BlobBlock:
    """What the first delegate of a process makes for all."""
    size = PROCESS + _THREAD * (threads - 2)
    return BlobBlock(Category.METADATA, max(size, 0), Life.LOADED, Sureness.COMPUTED, "thread pool")


def _capacity(count: int, begin: int) -> int:
    capacity = begin
    while capacity < count:
        capacity = max(min(capacity * 2, capacity + 512), capacity + _GROWTH)
    return capacity
