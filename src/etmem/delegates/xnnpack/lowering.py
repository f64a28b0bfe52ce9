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
UNARY = frozenset(
    ("Sigmoid", "Clamp", "Floor", "SquareRoot", "Ceiling", "Hardswish", "LeakyReLU", "Negate", "Square", "ELU", "Abs",
     "ReciprocalSquareRoot", "Log", "Gelu", "Tanh", "Exp", "Sin", "Cos", "Lookup")
)  # fmt: skip
BINARY = frozenset(("Add", "Subtract", "Multiply", "Div", "Minimum", "Maximum", "PReLU"))
_BYTES = (DataType.QINT8, DataType.QUINT8)
_LONGEST_ROW = 16


def lowered(graph: Graph) -> Graph:
    """A pointwise convolution is a matrix multiplication; an elementwise operator's limits are an operator of
    their own, those of a convolution are part of it; a matrix multiplication that is quantized on the fly
    quantizes its input itself."""
    values = dict(graph.values)
    for node in graph.nodes:
        if node.kind == "Convert":
            # The file may have it in the order of the exporter's dimensions; the runtime takes the input's.
            values[node.outputs[0]] = replace(values[node.outputs[0]], dims=values[node.inputs[0]].dims)
    nodes = [replace(node, kind="FullyConnected") if is_pointwise(node) else node for node in graph.nodes]
    nodes = _with_tables(values, _merged_clamps(values, _with_clamps(values, nodes)))
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


def _with_tables(values: dict[int, XValue], nodes: list[XNode]) -> list[XNode]:
    """Elementwise operators in a row, from 8 bits to 8 bits, become one that looks the result up."""
    consumers: dict[int, list[XNode]] = {}
    for node in nodes:
        for number in dict.fromkeys(node.inputs):
            consumers.setdefault(number, []).append(node)
    gone: set[int] = set()
    tables: dict[int, XNode] = {}
    for node in nodes:
        chain = [] if id(node) in gone else _chain(values, node, consumers)
        if len(chain) > 1:
            gone |= {id(member) for member in chain[:-1]}
            tables[id(chain[-1])] = replace(
                chain[-1], kind="Lookup", inputs=node.inputs[:1], clamped=False, attributes={}, lists={}
            )
    return [tables.get(id(node), node) for node in nodes if id(node) not in gone]


def _chain(values: dict[int, XValue], node: XNode, consumers: dict[int, list[XNode]]) -> list[XNode]:
    """The longest row that begins with a node and ends in 8 bits; one or none where there is no such row."""
    if not _is_elementwise(values, node, set()) or values[node.inputs[0]].dtype not in _BYTES:
        return []
    found, known = [node], {node.inputs[0]}
    while len(found) < _LONGEST_ROW:
        output = found[-1].outputs[0]
        users = consumers.get(output, [])
        known.add(output)
        if values[output].external or len(users) != 1 or not _is_elementwise(values, users[0], known):
            break
        found.append(users[0])
    while found and values[found[-1].outputs[0]].dtype not in _BYTES:
        found.pop()
    return found


def _is_elementwise(values: dict[int, XValue], node: XNode, known: set[int]) -> bool:
    """Whether each of its results follows from one number; of two operands both have to be ``known``."""
    if node.kind in UNARY or node.kind == "Convert":
        return values[node.outputs[0]].dtype is not DataType.QDINT8
    return node.kind in BINARY and all(number in known for number in node.inputs)


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
