"""Operators of odd sizes, in every type of weights: what rounding to a CPU's tiles does shows on these."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import export

from tests.models.lowering import lower, xnnpack
from tests.models.quantizing import int4, lower_in_turn, quantized, static_int8

WIDTHS = (96, 130, 33, 100, 7, 64)


class Linears(nn.Module):
    """Matrix multiplications whose rows and columns fit no tile."""

    def __init__(self, widths: tuple[int, ...] = WIDTHS) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Linear(before, after, bias=index != 1) for index, (before, after) in enumerate(pairwise(widths))
        )

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


class Heads(nn.Module):
    """Matrix multiplications of one input, whose width blocks of 32 divide."""

    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.ModuleList(nn.Linear(WIDTHS[0], width, bias=width != 130) for width in WIDTHS[1:])

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([head(x) for head in self.heads[:4]], -1) * self.heads[4](x).sum()


class Images(nn.Module):
    """Convolutions: dense, strided, dilated, grouped, pointwise and depthwise."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 18, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(18, 18, 3, padding=1, groups=18),
            nn.ReLU(),
            nn.Conv2d(18, 37, 1),
            nn.ReLU(),
            nn.Conv2d(37, 37, 5, stride=2, padding=2, groups=37),
            nn.Conv2d(37, 12, 3, dilation=2, padding=2, bias=False),
            nn.ReLU(),
            nn.Conv2d(12, 20, 3, padding=1, groups=2),
            nn.ReLU(),
            nn.Conv2d(20, 9, 2, stride=2),
            nn.ReLU(),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


class Pools(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        x = nn.functional.max_pool2d(x, 3, 2, 1)
        x = nn.functional.avg_pool2d(x, 3, 2)
        return x.mean((2, 3), keepdim=True)


class Growing(nn.Module):
    """Transposed convolutions with and without overlap, and bilinear resizes."""

    def __init__(self) -> None:
        super().__init__()
        self.apart = nn.ConvTranspose2d(9, 21, 2, stride=2)
        self.overlapping = nn.ConvTranspose2d(21, 10, 3, stride=2, padding=1, output_padding=1)
        self.dense = nn.ConvTranspose2d(10, 5, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.overlapping(torch.relu(self.apart(x))))
        x = nn.functional.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
        return torch.relu(self.dense(x))


def rows(count: int) -> tuple[Tensor]:
    return (torch.randn(count, WIDTHS[0]),)


def image(channels: int = 3, side: int = 31) -> tuple[Tensor]:
    return (torch.randn(1, channels, side, side),)


def floats() -> Any:
    methods = {
        "linears": (Linears(), rows(13)),
        "images": (Images(), image()),
        "pools": (Pools(), image(10, 33)),
        "growing": (Growing(), image(9, 7)),
    }
    return lower({name: export(model.eval(), inputs) for name, (model, inputs) in methods.items()}, xnnpack())


def on_the_fly() -> Any:
    """Int8 and int4, with few rows and with one."""
    programs = {f"rows_{count}": quantized(Linears(), rows(count), is_dynamic=True) for count in (1, 13)}
    programs |= {f"blocks_{count}": int4(Heads(), rows(count), block=32) for count in (1, 13)}
    programs["channels"] = int4(Heads(), rows(13), block=0)
    return lower_in_turn(programs)


MODELS = {
    "odd_shapes.pte": floats,
    "odd_shapes_int8.pte": lambda: static_int8(
        {
            "linears": (Linears(), rows(13)),
            "images": (Images(), image()),
            "growing": (Growing(), image(9, 7)),
        }
    ),
    "odd_shapes_dynamic.pte": on_the_fly,
}
