"""What one XNNPACK delegate will allocate: ``etmem plan``'s view of its blob.

Sizes of packed weights, pointer tables and the workspace follow from the graph and the CPU's tiles; the sizes of
XNNPACK's own structures are those of the version in executorch 1.5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from etmem.delegates.estimating import (
    BlobBlock,
    BlobEstimate,
    CannotEstimate,
    Life,
    Machine,
    NamedUse,
    Sureness,
)
from etmem.delegates.xnnpack import packing
from etmem.delegates.xnnpack.graph import DataType, Graph, XNode, XValue, read
from etmem.delegates.xnnpack.kernels import is_dynamic, kernel
from etmem.delegates.xnnpack.lowering import lowered
from etmem.delegates.xnnpack.structures import bookkeeping, operator_bytes, probe, process, whole_image_context
from etmem.delegates.xnnpack.tiles import Left, Tiles, tiles
from etmem.delegates.xnnpack.workspace import workspace_bytes
from etmem.model.words import Category
from etmem.program.flatbuffer import MalformedError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_IMAGES = ("Conv2d", "DepthwiseConv2d", "ConvTranspose2d")
_MATRICES = ("FullyConnected", "DynamicFullyConnected")
_WITH_WEIGHTS = (*_MATRICES, *_IMAGES)
_POOLING = ("MaxPooling2d", "AvgPooling2d", "ArgMaxPooling2d")


def estimate(blob: memoryview, machine: Machine, options: Mapping[str, str]) -> BlobEstimate:
    """See ``etmem.delegates.estimating``."""
    try:
        whole = read(blob)
    except MalformedError as error:
        raise CannotEstimate(str(error)) from error
    known = tiles(machine.isa, machine.cpu)
    if known is None:
        where = machine.isa or "a microcontroller"
        raise CannotEstimate(f"XNNPACK's tiles on {where} are not known here: its blob is a lower bound")
    graph = lowered(whole)
    profiled = options.get("event_tracer") == "true"
    notes: list[str] = []
    blocks: list[BlobBlock] = []
    for node in graph.nodes:
        blocks += _operator(graph, node, known, machine, notes)
    size = workspace_bytes(graph, known, machine.threads)
    sure = Sureness.BOUNDED if size.low < size.high else Sureness.COMPUTED if notes else _sure(known)
    workspace = BlobBlock(
        Category.WORKSPACE, size.usual, Life.STEADY, sure, "values between operators", low=size.low, high=size.high
    )
    return BlobEstimate(
        named_data=tuple(_named(whole)),
        blocks=(*bookkeeping(graph, profiled=profiled), *blocks),
        workspace=workspace if size.usual else None,
        blob_kept=False,
        once=(process(machine.threads),),
        notes=tuple(dict.fromkeys(notes)),
    )


def _named(graph: Graph) -> Iterator[NamedUse]:
    """Named constants: those that are packed are freed, an operator that does not pack points at its own."""
    packed = {number for node in graph.nodes if node.kind in _WITH_WEIGHTS for number in node.inputs[1:]}
    for value in graph.values.values():
        for constant in (value.constant, value.scales):
            if constant is not None and constant.key is not None:
                yield NamedUse(constant.key, kept=value.id not in packed)


def _operator(graph: Graph, node: XNode, known: Tiles, machine: Machine, notes: list[str]) -> Iterator[BlobBlock]:
    whole = node.kind == "ConvTranspose2d" and packing.is_whole(graph, node, known)
    if node.kind in _WITH_WEIGHTS:
        yield from probe(node, graph.values[node.inputs[1]], kernel(graph, node, known), known, whole=whole)
    on_the_fly = node.kind == "Convert" and graph.values[node.outputs[0]].dtype is DataType.QDINT8
    yield from operator_bytes(node, known, on_the_fly=on_the_fly)
    if whole:
        yield whole_image_context(known)
    if node.kind in _MATRICES:
        if graph.values[node.inputs[1]].constant is not None:
            yield from _packed(graph, node, packing.fully_connected(graph, node, known), known, notes)
    elif node.kind in _IMAGES:
        found = packing.depthwise(graph, node, known) if node.kind == "DepthwiseConv2d" else None
        found = found or packing.convolution(graph, node, known)
        yield from _packed(graph, node, found[0] if found else None, known, notes)
        yield from _pointers(node.kind, found[1] if found else 0, machine, known)
        if zeros := packing.zero_buffer(graph, node, known):
            yield BlobBlock(Category.PACKED_WEIGHTS, zeros, Life.LOADED, _sure(known), f"{node.kind} padding")
        if is_dynamic(graph, node):
            # Every image is padded with its own zero point.
            images = graph.values[node.outputs[0]].dims[:1]
            yield _buffer(machine.pointer_bytes * (images[0] if images else 1), f"{node.kind} padding", known)
    else:
        yield from _tables(graph, node, known, machine)
    if node.kind == "ScaledDotProductAttention":
        notes.append("ScaledDotProductAttention is not understood")


def _tables(graph: Graph, node: XNode, known: Tiles, machine: Machine) -> Iterator[BlobBlock]:
    """What operators without weights keep from their first run on."""
    name, image = node.kind, graph.values[node.inputs[0]]
    if name in _POOLING:
        yield from _pointers(name, packing.pooling(graph, node), machine, known)
    if name == "StaticResizeBilinear2D":
        pixels = node.attributes.get("new_height", 0) * node.attributes.get("new_width", 0)
        yield from _pointers(name, 4 * pixels, machine, known)
        weights = 2 * pixels * (4 if image.dtype is DataType.FP32 else 2)
        yield _buffer(weights, f"{name} weights", known)
    if name in ("AvgPooling2d", "GlobalAvgPooling2d"):
        channels = image.dims[-1] if image.dims else 0
        yield _buffer(channels * image.dtype.bits // 8 + packing.EXTRA_BYTES, f"{name} padding", known)


def _sure(known: Tiles) -> Sureness:
    return Sureness.EXACT if known.counted else Sureness.COMPUTED


def _packed(graph: Graph, node: XNode, size: int | None, known: Tiles, notes: list[str]) -> Iterator[BlobBlock]:
    weights = graph.values[node.inputs[1]]
    key = _cache_key(graph, node, weights)
    if size is not None:
        if weights.dtype is DataType.QCINT8 and not is_dynamic(graph, node):
            scales = 4 * weights.dims[0] if weights.dims else 0
            yield BlobBlock(Category.PACKED_WEIGHTS, scales, Life.CREATE, Sureness.COMPUTED, f"{node.kind} scales")
        yield BlobBlock(Category.PACKED_WEIGHTS, size, Life.LOADED, _sure(known), node.kind, key=key)
        gemm = kernel(graph, node, known)
        if gemm is not None and gemm.left is Left.BYTES and weights.dtype is DataType.QCINT8:
            copy = weights.nbytes
            yield BlobBlock(Category.METADATA, copy, Life.MOMENT, Sureness.COMPUTED, f"{node.kind} in another order")
        return
    notes.append(f"{node.kind} with weights of type {weights.dtype.name.lower()} is bounded by its original size")
    original = weights.nbytes
    yield BlobBlock(
        Category.PACKED_WEIGHTS, original, Life.LOADED, Sureness.BOUNDED, node.kind,
        low=original, high=2 * original + 4096, key=key,
    )  # fmt: skip


def _cache_key(graph: Graph, node: XNode, weights: XValue) -> str | None:
    """What the weight cache knows packed weights by: the names of weights and bias."""
    if weights.constant is None or weights.constant.key is None:
        return None
    bias = packing.bias_of(node)
    constant = graph.values[bias].constant if bias is not None else None
    return weights.constant.key + (constant.key or "" if constant is not None else "")


def _pointers(name: str, count: int, machine: Machine, known: Tiles) -> Iterator[BlobBlock]:
    if count:
        size = count * machine.pointer_bytes
        if name == "DepthwiseConv2d":
            size = packing.round_up(size, known.alignment)
        yield _buffer(size, name, known)


def _buffer(size: int, what: str, known: Tiles) -> BlobBlock:
    return BlobBlock(Category.OPERATOR_BUFFERS, size, Life.STEADY, _sure(known), what)
