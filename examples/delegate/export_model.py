"""Exports a model of which PoolBackend takes two parts: export_model.py MODEL.pte"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from executorch.exir import to_edge_transform_and_lower
from pool_delegate import PoolPartitioner
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU())
        self.second = nn.Linear(1024, 256)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # softmax is none of the delegate's operators: it cuts the model into two delegates.
        return self.second(torch.softmax(self.first(x), dim=-1))


def model_inputs() -> tuple[torch.Tensor]:
    return (torch.linspace(-1, 1, 8 * 512).reshape(8, 512),)


def main(path: str) -> None:
    torch.manual_seed(0)
    program = torch.export.export(Model().eval(), model_inputs())
    lowered = to_edge_transform_and_lower(program, partitioner=[PoolPartitioner()])
    Path(path).write_bytes(lowered.to_executorch().buffer)


if __name__ == "__main__":
    main(*sys.argv[1:])
