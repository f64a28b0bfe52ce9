"""Small programs that together hold every kind of value and instruction. Run with a directory to fill."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.devtools import BundledProgram
from executorch.devtools.bundled_program.config import MethodTestCase, MethodTestSuite
from executorch.devtools.bundled_program.serialize import serialize_from_bundled_program_to_flatbuffer
from executorch.exir import ExecutorchBackendConfig, to_edge, to_edge_transform_and_lower
from executorch.exir._serialize._flatbuffer_program import _program_to_flatbuffer
from executorch.exir.passes import MemoryPlanningPass
from executorch.exir.passes.init_mutable_pass import InitializedMutableBufferPass
from executorch.exir.schema import Buffer, SubsegmentOffsets
from torch import nn
from torch.export import Dim, export


class Branches(nn.Module):
    """Control flow, a scalar input, a list argument and an optional tensor."""

    def forward(self, x, flag, scale: float):
        x = torch.cond(flag, lambda t: t + 1, lambda t: t * 2, (x,))
        parts = torch.split(x * scale, [1, 3])
        return torch.cat([parts[1], parts[0]]), torch.nn.functional.layer_norm(x, [4])


class Image(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, x, bias):
        return self.conv(x).to(torch.float64) + bias


class Counter(nn.Module):
    """A buffer with an initial value that is written."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.arange(6, dtype=torch.int64))

    def forward(self, x):
        self.count.add_(1)
        return x + self.count


def branches():
    inputs = (torch.ones(4, 4), torch.tensor(True), 2.0)
    return to_edge(export(Branches(), inputs)).to_executorch()


def dynamic():
    program = export(nn.Linear(8, 8), (torch.randn(3, 8),), dynamic_shapes=({0: Dim("rows", min=1, max=64)},))
    methods = {"get_vocab_size": 32000, "get_name": "small", "use_kv_cache": True, "get_eos_ids": [1, 2]}
    return to_edge(program, constant_methods=methods).to_executorch()


def counter():
    config = ExecutorchBackendConfig(
        passes=[InitializedMutableBufferPass(["count"])],
        emit_mutable_buffer_names=True,
        memory_planning_pass=MemoryPlanningPass(alloc_graph_input=False),
    )
    return to_edge(export(Counter(), (torch.ones(6, dtype=torch.int64),))).to_executorch(config)


def external():
    edge = to_edge_transform_and_lower(export(nn.Linear(16, 4), (torch.randn(1, 16),)))
    return edge.to_executorch(ExecutorchBackendConfig(external_constants=True))


def inline_delegate():
    edge = to_edge_transform_and_lower(
        export(nn.Linear(16, 4), (torch.randn(1, 16),)), partitioner=[XnnpackPartitioner()]
    )
    return edge.to_executorch(ExecutorchBackendConfig(extract_delegate_segments=False))


def inline_constants() -> bytes:
    """As files of before September 2024: constants in the flatbuffer, no constant segment, no extended header."""
    program = to_edge(export(nn.Linear(16, 4), (torch.randn(1, 16),))).to_executorch().executorch_program
    data = [bytes(range(64)), bytes(16)]
    program.constant_buffer = [Buffer(storage=b""), *(Buffer(storage=entry) for entry in data)]
    program.constant_segment = SubsegmentOffsets(segment_index=0, offsets=[])
    program.segments = []
    return bytes(_program_to_flatbuffer(program, constant_tensor_alignment=16).data)


def bundled(program) -> bytes:
    x = torch.arange(2 * 3 * 8 * 8, dtype=torch.float32).reshape(2, 3, 8, 8).to(memory_format=torch.channels_last)
    case = MethodTestCase(inputs=[x, torch.tensor(1.5, dtype=torch.float64)], expected_outputs=())
    bundle = BundledProgram(program, [MethodTestSuite("forward", [case, case])])
    return serialize_from_bundled_program_to_flatbuffer(bundle)


def main(directory: str) -> None:
    torch.manual_seed(0)
    target = Path(directory)
    made = {
        "branches": branches(),
        "dynamic": dynamic(),
        "counter": counter(),
        "external": external(),
        "inline_delegate": inline_delegate(),
    }
    for name, program in made.items():
        (target / f"{name}.pte").write_bytes(program.buffer)
    made["external"].write_tensor_data_to_file(directory)
    (target / "inline_constants.pte").write_bytes(inline_constants())
    image = export(Image(), (torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last), torch.tensor(1.5).double()))
    (target / "bundle.bpte").write_bytes(bundled(to_edge(image).to_executorch()))


if __name__ == "__main__":
    main(sys.argv[1])
