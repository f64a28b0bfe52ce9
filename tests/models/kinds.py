"""Small programs, one for each kind of thing that a program can hold or lack."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim, export

from tests.models.lowering import lower, xnnpack

COMPUTED = (
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.float32,
    torch.float64,
    torch.bool,
    torch.bfloat16,
)
CARRIED = (
    torch.uint16,
    torch.uint32,
    torch.complex32,
    torch.complex64,
    torch.complex128,
    torch.float8_e5m2,
    torch.float8_e4m3fn,
)
"""Dtypes that the exporter lets in as inputs and that no portable kernel computes on."""


class EveryDtype(nn.Module):
    """One input of each dtype that a program can hold, an output of each that kernels compute on."""

    def forward(self, *xs: Tensor) -> list[Tensor]:
        return [torch.flip(x, (0,)) for x in xs[: len(COMPUTED)]]


class Structured(nn.Module):
    """A list and a dict of tensors, and scalars, as inputs: flattened by export, scalars kept as they were given."""

    def forward(
        self, xs: list[Tensor], named: dict[str, Tensor], count: int, scale: float, flag: bool, nothing: None
    ) -> dict[str, Tensor]:
        total = torch.stack(xs).sum(0) * scale + count
        return {"total": total - named["bias"] if flag else total, "cat": torch.cat(xs)}


class ManyOperators(nn.Module):
    """A long chain of small portable operators: many instructions, allocations and kernels, few bytes."""

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        y = x
        for step in range(12):
            y = torch.sin(y) + torch.cos(x) * (step + 1)
            y = torch.cumsum(torch.sigmoid(y).roll(1, -1), -1) / (y.abs() + 1)
        values, indices = torch.topk(y, 2, dim=-1)
        return values.amax(-1), indices, torch.where(y > 0, y, x), y.argmax(-1), torch.cat([x, y]).transpose(0, 1)


class Counter(nn.Module):
    """State that outlives a call."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(1, dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        self.calls.add_(1)
        return x + self.calls


class Triple(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.ops.etmem_test.triple(x) + 1


def every_dtype() -> Any:
    inputs = tuple(torch.zeros(4, dtype=dtype) for dtype in COMPUTED + CARRIED)
    return lower(export(EveryDtype(), inputs))


def structured() -> Any:
    inputs = ([torch.randn(2, 3), torch.randn(2, 3)], {"bias": torch.randn(2, 3)}, 3, 0.5, True, None)
    return lower(export(Structured(), inputs))


def many_operators() -> Any:
    return lower(export(ManyOperators(), (torch.randn(8, 64),)))


def many_methods() -> Any:
    """Two dynamic dimensions in one method, state in another, delegates in a third, and methods without inputs."""
    rows, columns = Dim("rows", min=1, max=16), Dim("columns", min=2, max=32)
    dense = nn.Linear(32, 32).eval()
    programs = {
        "grow": export(ManyOperators(), (torch.randn(4, 8),), dynamic_shapes=({0: rows, 1: columns},)),
        "count": export(Counter(), (torch.zeros(1, dtype=torch.int64),)),
        "dense": export(dense, (torch.randn(1, 32),)),
    }
    constants = {"get_vocab_size": 320, "get_eos_ids": [1, 2], "get_scale": 0.5, "use_kv_cache": False}
    return lower(programs, {"grow": None, "count": None, "dense": xnnpack()}, constants)


def external_data() -> Any:
    """The weights in a .ptd beside the program."""
    from executorch.exir import ExecutorchBackendConfig

    model = nn.Sequential(nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 8)).eval()
    config = ExecutorchBackendConfig(external_constants=True)
    return lower(export(model, (torch.randn(1, 128),)), config=config)


def bundled() -> bytes:
    """Two test cases with inputs and expected outputs around the program."""
    from executorch.devtools import BundledProgram
    from executorch.devtools.bundled_program.config import MethodTestCase, MethodTestSuite
    from executorch.devtools.bundled_program.serialize import serialize_from_bundled_program_to_flatbuffer

    model = nn.Sequential(nn.Linear(16, 16), nn.ReLU()).eval()
    inputs = [(torch.randn(2, 16),), (torch.ones(2, 16),)]
    cases = [MethodTestCase(inputs=case, expected_outputs=(model(*case),)) for case in inputs]
    program = lower(export(model, inputs[0]))
    return serialize_from_bundled_program_to_flatbuffer(BundledProgram(program, [MethodTestSuite("forward", cases)]))


def custom_operator() -> Any:
    """An operator of a library that no runtime has."""
    library = torch.library.Library("etmem_test", "DEF")
    library.define("triple(Tensor x) -> Tensor")
    library.define("triple.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)")
    library.impl("triple", lambda x: x * 3, "CompositeExplicitAutograd")
    library.impl("triple.out", lambda x, *, out: out.copy_(x * 3), "CompositeExplicitAutograd")
    return lower(export(Triple(), (torch.randn(4),)))


def unknown_backend() -> Any:
    """A delegate of a backend that no runtime has."""
    from executorch.exir import to_edge
    from executorch.exir.backend.backend_api import to_backend
    from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult

    class NoSuchBackend(BackendDetails):
        @staticmethod
        def preprocess(edge_program: Any, compile_specs: Any) -> PreprocessResult:
            return PreprocessResult(processed_bytes=b"etmem" * 200)

    class Outer(nn.Module):
        def __init__(self, lowered: Any) -> None:
            super().__init__()
            self.lowered = lowered

        def forward(self, x: Tensor) -> Tensor:
            return self.lowered(x) + 1

    inputs = (torch.randn(4, 4),)
    edge = to_edge(export(nn.Linear(4, 4).eval(), inputs))
    lowered = to_backend(NoSuchBackend.__name__, edge.exported_program(), [])
    return to_edge(export(Outer(lowered), inputs)).to_executorch()


def without_constant_segment() -> bytes:
    """A program as exporters wrote it before segments: constants inside the flatbuffer, no extended header."""
    from executorch.exir._serialize._flatbuffer_program import _program_to_flatbuffer
    from executorch.exir._serialize._program import deserialize_pte_binary

    model = nn.Linear(16, 16).eval()
    program = deserialize_pte_binary(bytes(lower(export(model, (torch.randn(1, 16),))).buffer)).program
    program.constant_segment = None
    program.segments = []
    return bytes(_program_to_flatbuffer(program).data)


MODELS = {
    "every_dtype.pte": every_dtype,
    "structured.pte": structured,
    "many_operators.pte": many_operators,
    "many_methods.pte": many_methods,
    "external_data.pte": external_data,
    "bundled.bpte": bundled,
    "custom_operator.pte": custom_operator,
    "unknown_backend.pte": unknown_backend,
    "without_constant_segment.pte": without_constant_segment,
}
