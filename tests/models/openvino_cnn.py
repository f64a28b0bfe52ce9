"""Small convolutional networks for OpenVINO on the CPU: alone, and in one program with XNNPACK."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from executorch.backends.openvino.partitioner import OpenvinoPartitioner
from executorch.exir.backend.backend_details import CompileSpec
from torch import Tensor, nn
from torch.export import export

from tests.models.lowering import lower, xnnpack

IMAGE = (1, 3, 64, 64)


class Cnn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.Sequential(
            *(
                nn.Sequential(nn.Conv2d(before, after, 3, stride=2, padding=1), nn.BatchNorm2d(after), nn.ReLU())
                for before, after in pairwise((3, 16, 32, 64))
            )
        )
        self.head = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(x).mean((2, 3)))


def openvino() -> OpenvinoPartitioner:
    return OpenvinoPartitioner([CompileSpec("device", b"CPU")])


def openvino_cnn() -> Any:
    return lower(export(Cnn().eval(), (torch.randn(IMAGE),)), openvino())


def openvino_and_xnnpack() -> Any:
    """Two methods, each with a delegate of its own: both backends live in one process and one program."""
    images, rows = (torch.randn(IMAGE),), (torch.randn(1, 256),)
    dense = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    return lower(
        {"see": export(Cnn().eval(), images), "think": export(dense.eval(), rows)},
        {"see": openvino(), "think": xnnpack()},
    )


MODELS = {"openvino_cnn.pte": openvino_cnn, "openvino_and_xnnpack.pte": openvino_and_xnnpack}
