"""The graph as the runtime builds it from the file's: a few operators come, go or change."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from etmem.delegates.xnnpack.graph import DataType, Graph, XNode
from etmem.delegates.xnnpack.window import is_pointwise

if TYPE_CHECKING:
    from etmem.delegates.xnnpack.graph import XValue

_LIMITING = ("FullyConnected", "Conv2d", "DepthwiseConv2d", "ConvTranspose2d", "MaxPooling2d", "AvgPooling2d", "Clamp")
_LIMITED = ("Add", "Subtract", "Multiply", "Div")


def lowered(graph: Graph) -> Graph:
    """A pointwise convolution is a matrix multiplication; an elementwise operator's limits are an operator of
    their own, those of a convolution are part of it; a matrix multiplication that is quantized on the fly
    quantizes its input itself."""
    values = dict(graph.values)
    nodes = [replace(node, kind="FullyConnected") if is_pointwise(node) else node for node in graph.nodes]
    nodes = _merged_clamps(values, _with_clamps(values, nodes))
    return Graph(values, tuple(_without_converts(values, nodes)), graph.externals, graph.has_header)


def _with_clamps(values: dict[int, XValue], nodes: list[XNode]) -> list[XNode]:
    found, fresh = [], max(values, default=0) + 1
    for node in nodes:
        if node.clamped and node.kind in _LIMITED:
            values[fresh] = replace(values[node.outputs[0]], id=fresh, external=False)
            found.append(replace(node, outputs=(fresh,), clamped=False))
            found.append(replace(node, kind="Clamp", inputs=(fresh,), clamped=False, attributes={}, lists={}))
            fresh += 1
        else:
            found.append(node)
    return found


def _merged_clamps(values: dict[int, XValue], nodes: list[XNode]) -> list[XNode]:
    """Limits behind an operator that has limits of its own become its own."""
    uses = Counter(number for node in nodes for number in node.inputs)
    found: list[XNode] = []
    producer: dict[int, int] = {}
    for node in nodes:
        source = node.inputs[0]
        if node.kind == "Clamp" and uses[source] == 1 and not values[source].external and source in producer:
            place = producer[source]
            found[place] = replace(found[place], outputs=node.outputs)
        else:
            place = len(found)
            found.append(node)
        if found[place].kind in _LIMITING:
            producer[node.outputs[0]] = place
    return found


def _without_converts(values: dict[int, XValue], nodes: list[XNode]) -> list[XNode]:
    sources = {
        node.outputs[0]: node.inputs[0]
        for node in nodes
        if node.kind == "Convert" and values[node.outputs[0]].dtype is DataType.QDINT8
    }
    left = [
        replace(node, inputs=(sources[node.inputs[0]], *node.inputs[1:]), kind="DynamicFullyConnected")
        if node.kind == "FullyConnected" and node.inputs[0] in sources
        else node
        for node in nodes
    ]
    used = {number for node in left for number in node.inputs}
    return [node for node in left if not (node.kind == "Convert" and node.outputs[0] in sources.keys() - used)]
