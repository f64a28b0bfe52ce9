"""Programs for a delegate that allocates what its blob says (tests/accuracy/delegate); PLANS is the closed form."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

BACKEND = "AllocatingBackend"
INIT, EXECUTE = 0, 1
ROUTES = (
    "runtime_allocator",
    "temp_allocator",
    "malloc",
    "calloc",
    "realloc",
    "posix_memalign",
    "aligned_alloc",
    "operator_new",
    "operator_new_aligned",
    "mmap",
    "mremap",
    "thread",
)
"""In the order of the enum in delegate.cpp."""

PAGE = 4096


@dataclass(frozen=True)
class Step:
    """One allocation. Init's live until destroy; those of the first execute too if ``kept``, else to its end."""

    stage: int
    route: str
    bytes: int
    category: str = ""
    """Of a tag around it; empty for none."""
    kept: bool = True


def _every_heap_route(stage: int, base: int, kept: bool) -> tuple[Step, ...]:
    """Multiples of 128: operator new rounds up to the alignment that it is asked for."""
    names = ROUTES[2:9]
    return tuple(Step(stage, name, base + 128 * index, kept=kept) for index, name in enumerate(names))


PLANS: dict[str, tuple[Step, ...]] = {
    "heap": (*_every_heap_route(INIT, 102_400, True), *_every_heap_route(EXECUTE, 307_200, False)),
    "mappings": (
        Step(INIT, "mmap", 50 * PAGE),
        Step(INIT, "mremap", 70 * PAGE),
        Step(EXECUTE, "mmap", 90 * PAGE, kept=False),
        Step(EXECUTE, "mremap", 110 * PAGE),
    ),
    "allocators": (
        Step(INIT, "runtime_allocator", 123_456),
        Step(INIT, "runtime_allocator", 7),
        Step(EXECUTE, "temp_allocator", 234_567, kept=False),
        Step(EXECUTE, "temp_allocator", 11, kept=False),
    ),
    "threads": (Step(INIT, "thread", 654_321), Step(EXECUTE, "thread", 765_432, kept=False)),
    "tagged": (
        Step(INIT, "malloc", 400_001, "packed_weights"),
        Step(INIT, "malloc", 200_003, "operator_buffers"),
        Step(INIT, "malloc", 100_005),
        Step(EXECUTE, "mmap", 130 * PAGE, "workspace"),
    ),
    "nothing": (),
}
"""By method."""


def encode(plan: tuple[Step, ...]) -> bytes:
    """Records of 64 bytes: stage, route, bytes, kept, category (40 bytes, padded with zeros)."""
    rows = ((s.stage, ROUTES.index(s.route), s.bytes, s.kept, s.category.encode()) for s in plan)
    return b"".join(struct.pack("<IIQQ40s", *row) for row in rows)


def allocating() -> Any:
    """A method for each plan, all of them one delegate between two portable operators."""
    import torch
    from executorch.exir import to_edge
    from executorch.exir.backend.backend_api import to_backend
    from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult
    from executorch.exir.backend.compile_spec_schema import CompileSpec
    from torch import nn
    from torch.export import export

    class AllocatingBackend(BackendDetails):
        @staticmethod
        def preprocess(edge_program: Any, compile_specs: Any) -> PreprocessResult:
            return PreprocessResult(processed_bytes=bytes(compile_specs[0].value))

    class Outer(nn.Module):
        def __init__(self, lowered: Any) -> None:
            super().__init__()
            self.lowered = lowered

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.lowered(x) + 1

    inputs = (torch.zeros(4),)
    programs = {}
    for method, plan in PLANS.items():
        edge = to_edge(export(nn.ReLU(), inputs)).exported_program()
        spec = CompileSpec("plan", encode(plan) or b"\0")
        programs[method] = export(Outer(to_backend(AllocatingBackend.__name__, edge, [spec])), inputs)
    return to_edge(programs).to_executorch()


MODELS = {"allocating.pte": allocating}
