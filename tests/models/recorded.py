"""Models with an ETRecord beside them, under the same name with the suffix ``.etrecord``."""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor, nn
from torch.export import Dim, export

from tests.models.cases import IMAGE, Convs
from tests.models.lowering import xnnpack


class Recorded:
    """A program that is written together with its ETRecord."""

    def __init__(self, program: Any) -> None:
        self._program = program

    def write_to_file(self, file: BinaryIO) -> None:
        self._program.write_to_file(file)
        self._program.get_etrecord().save(str(Path(file.name).with_suffix(".etrecord")))


class Rows(nn.Module):
    """Small, portable and dynamic: every tensor follows the number of rows."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, 32)
        self.second = nn.Linear(32, 4)

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.cumsum(self.first(x), dim=-1)
        return self.second(hidden)


def lower(programs: Any, partitioner: Any) -> Recorded:
    from executorch.exir import to_edge_transform_and_lower

    lowered = to_edge_transform_and_lower(programs, partitioner=partitioner, generate_etrecord=True)
    return Recorded(lowered.to_executorch())


def convs(broken: bool) -> Recorded:
    return lower(export(Convs(broken).eval(), (torch.randn(IMAGE),)), [xnnpack()])


def rows() -> Recorded:
    many = Dim("many", min=1, max=1024)
    return lower(export(Rows().eval(), (torch.randn(4, 8),), dynamic_shapes=({0: many},)), [])


def two_methods() -> Recorded:
    model = Rows().eval()
    programs = {"long": export(model, (torch.randn(64, 8),)), "short": export(model, (torch.randn(1, 8),))}
    return lower(programs, {"long": [], "short": [xnnpack()]})


MODELS = {
    "recorded_convs.pte": lambda: convs(broken=False),
    "recorded_breaks.pte": lambda: convs(broken=True),
    "recorded_rows.pte": rows,
    "recorded_methods.pte": two_methods,
}
