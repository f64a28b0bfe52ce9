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
from etmem.delegates.xnnpack.lowering import lowered
from etmem.delegates.xnnpack.structures import bookkeeping, operator_bytes, process
from etmem.delegates.xnnpack.tiles import Tiles, tiles
from etmem.delegates.xnnpack.workspace import workspace_bytes
from etmem.model.words import Category
from etmem.program.flatbuffer import MalformedError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_PACKING = ("FullyConnected", "Conv2d", "DepthwiseConv2d", "ConvTranspose2d")
_POOLING = ("MaxPooling2d", "AvgPooling2d", "ArgMaxPooling2d")


def estimate(blob: memoryview, machine: Machine, options: Mapping[str, str]) -> BlobEstimate:
    """See ``etmem.delegates.estimating``."""
    try:
        whole = read(blob)
    except MalformedError as error:
        raise CannotEstimate(str(error)) from error
    known = tiles(machine.isa)
    if known is None:
        raise CannotEstimate(f"XNNPACK's tiles on {machine.isa} are not known here")
    graph = lowered(whole)
    profiled = options.get("event_tracer") == "true"
    notes: list[str] = []
    blocks: list[BlobBlock] = []
    for node in graph.nodes:
        blocks += _operator(graph, node, known, machine, notes)
    blocks += bookkeeping(graph, profiled=profiled)
    size = workspace_bytes(graph, known, machine.threads)
    # Whether rows are quantized by thread or all at once depends on the caches' sizes.
    on_the_fly = any(node.kind == "DynamicFullyConnected" for node in graph.nodes)
    sure = Sureness.COMPUTED if notes or on_the_fly else Sureness.EXACT
    return BlobEstimate(
        named_data=tuple(_named(whole)),
        blocks=tuple(blocks),
        workspace=BlobBlock(Category.WORKSPACE, size, Life.STEADY, sure, "values between operators") if size else None,
        blob_kept=False,
        once=(process(machine.threads),),
        notes=tuple(dict.fromkeys(notes)),
    )


def _named(graph: Graph) -> Iterator[NamedUse]:
    """Named constants: those that are packed are freed, an operator that does not pack points at its own."""
    packed = {number for node in graph.nodes if node.kind in _PACKING for number in node.inputs[1:]}
    for value in graph.values.values():
        for constant in (value.constant, value.scales):
            if constant is not None and constant.key is not None:
                yield NamedUse(constant.key, kept=value.id not in packed)


def _operator(graph: Graph, node: XNode, known: Tiles, machine: Machine, notes: list[str]) -> Iterator[BlobBlock]:
    name = node.kind
    yield from operator_bytes(node, machine.isa)
    if name in ("FullyConnected", "DynamicFullyConnected"):
        if graph.values[node.inputs[1]].constant is not None:
            yield from _packed(graph, node, packing.fully_connected(graph, node, known), notes)
    elif name in ("Conv2d", "ConvTranspose2d"):
        found = packing.convolution(graph, node, known)
        yield from _packed(graph, node, found[0] if found else None, notes)
        if name == "ConvTranspose2d":
            notes.append("ConvTranspose2d: its pointer tables are estimated as a convolution's")
        yield from _pointers(name, found[1] if found else 0, machine)
    elif name == "DepthwiseConv2d":
        found = packing.depthwise(graph, node, known) or packing.convolution(graph, node, known)
        yield from _packed(graph, node, found[0] if found else None, notes)
        yield from _pointers(name, found[1] if found else 0, machine)
    elif name in _POOLING:
        yield from _pointers(name, packing.pooling(graph, node), machine)
    elif name == "StaticResizeBilinear2D":
        pixels = node.attributes.get("new_height", 0) * node.attributes.get("new_width", 0)
        yield from _pointers(name, 4 * pixels, machine)
        yield BlobBlock(Category.OPERATOR_BUFFERS, 8 * pixels, Life.STEADY, Sureness.COMPUTED, name)
    elif name == "ScaledDotProductAttention":
        notes.append("ScaledDotProductAttention is not understood")
    if name in ("Conv2d", "DepthwiseConv2d"):
        zeros = packing.zero_buffer(graph, node, known)
        if zeros:
            yield BlobBlock(Category.PACKED_WEIGHTS, zeros, Life.LOADED, Sureness.EXACT, f"{name} padding")


def _packed(graph: Graph, node: XNode, size: int | None, notes: list[str]) -> Iterator[BlobBlock]:
    weights = graph.values[node.inputs[1]]
    key = _cache_key(graph, node, weights)
    if size is not None:
        # Scales of quantized weights pass through blocks of their own, which the load's peak may catch.
        sure = Sureness.EXACT if weights.dtype is DataType.FP32 else Sureness.COMPUTED
        yield BlobBlock(Category.PACKED_WEIGHTS, size, Life.LOADED, sure, node.kind, key=key)
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


def _pointers(name: str, count: int, machine: Machine) -> Iterator[BlobBlock]:
    if count:
        size = count * machine.pointer_bytes
        if name == "DepthwiseConv2d":
            size = packing.aligned(size)
        yield BlobBlock(Category.OPERATOR_BUFFERS, size, Life.STEADY, Sureness.EXACT, name)
