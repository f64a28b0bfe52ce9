"""The ahead-of-time half of the delegate: what it takes of a graph, and what it writes for pool_delegate.cpp."""

from __future__ import annotations

import struct
from typing import Any

import torch
from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult
from executorch.exir.backend.canonical_partitioners.pattern_op_partitioner import generate_pattern_op_partitions
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
from executorch.exir.backend.utils import tag_constant_data
from executorch.exir.dialects._ops import ops
from torch._export.utils import get_param, is_param
from torch.fx.passes.operator_support import OperatorSupportBase

LINEAR, RELU = ops.edge.aten.linear.default, ops.edge.aten.relu.default


class PoolBackend(BackendDetails):
    """Its name is the id that pool_delegate.cpp registers."""

    @staticmethod
    def preprocess(edge_program: Any, compile_specs: Any) -> PreprocessResult:  # noqa: ARG004
        """A chain of linear layers: their shapes, and each one's weights by output, then its bias."""
        blob, layers = b"", 0
        nodes = [
            node for node in edge_program.graph.nodes if node.op == "call_function" and node.target in (LINEAR, RELU)
        ]
        for node in nodes:
            if node.target is not LINEAR:
                continue
            weight, bias = (_constant(edge_program, node, place) for place in (1, 2))
            users = list(node.users)
            relu = len(users) == 1 and users[0].target is RELU
            outputs, inputs = weight.shape
            bias = torch.zeros(outputs) if bias is None else bias
            blob += struct.pack("<4I", inputs, outputs, relu, 0) + _floats(weight) + _floats(bias)
            layers += 1
        batch = nodes[-1].meta["val"].numel() // nodes[-1].meta["val"].shape[-1]
        return PreprocessResult(processed_bytes=struct.pack("<8s2I", b"POOL1", layers, batch) + blob)


class PoolPartitioner(Partitioner):
    """Takes linear layers with constant weights, and the relu behind one."""

    def ops_to_not_decompose(self, ep: Any) -> tuple[list[Any], None]:  # noqa: ARG002
        return [torch.ops.aten.linear.default], None

    def partition(self, exported_program: Any) -> PartitionResult:
        partitions = generate_pattern_op_partitions(
            exported_program.graph_module, op_support=_Supported(exported_program)
        )
        tags = {}
        for partition in partitions:
            tag = f"pool_{partition.id}"
            tags[tag] = DelegationSpec("PoolBackend", [])
            for node in partition.nodes:
                node.meta["delegation_tag"] = tag
        tag_constant_data(exported_program)
        return PartitionResult(tagged_exported_program=exported_program, partition_tags=tags)


class _Supported(OperatorSupportBase):
    def __init__(self, program: Any) -> None:
        self._program = program

    def is_node_supported(self, submodules: Any, node: Any) -> bool:  # noqa: ARG002
        if node.op != "call_function":
            return False
        if node.target is RELU:
            return node.args[0].target is LINEAR
        return node.target is LINEAR and all(is_param(self._program, weight) for weight in node.args[1:] if weight)


def _constant(program: Any, node: Any, place: int) -> Any:
    return get_param(program, node.args[place]) if len(node.args) > place and node.args[place] is not None else None


def _floats(tensor: Any) -> bytes:
    return bytes(tensor.detach().to(torch.float32).contiguous().numpy().tobytes())
