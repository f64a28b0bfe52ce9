"""Two convolutions without a tensor among inputs and outputs: runs where a runtime cannot be handed torch's tensors.

Wheels of ExecuTorch before 1.4 were built for another torch, whose tensors have another layout.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from tests.models.lowering import lower, xnnpack


class Tensorless(nn.Module):
    """Convolves a constant image, keeps the result's mean in a mutable buffer, and gives its number back."""

    def __init__(self) -> None:
        super().__init__()
        self.image: Tensor
        self.mean: Tensor
        self.register_buffer("image", torch.rand(1, 3, 256, 256))
        self.register_buffer("mean", torch.zeros(1, 32))
        self.first = nn.Conv2d(3, 32, 3, padding=1)
        self.second = nn.Conv2d(32, 32, 3, padding=1)

    def forward(self, number: int) -> int:
        self.mean.copy_(self.second(self.first(self.image).relu()).relu().mean((2, 3)))
        return number


def tensorless() -> Any:
    return lower(torch.export.export(Tensorless().eval(), (3,)), xnnpack())


MODELS = {"tensorless.pte": tensorless}
