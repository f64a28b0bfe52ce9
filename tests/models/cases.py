"""Models whose memory use has a closed form: cases.json beside this file gives it. All float32."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim, export

from tests.models.lowering import lower, xnnpack

WIDTH = 2048
IMAGE = (1, 3, 256, 256)
CHANNELS = 32


def graph_break(x: Tensor) -> Tensor:
    """An operator that XNNPACK does not take: what stands before and after it become delegates of their own."""
    return torch.cumsum(x, dim=-1) * 1e-3


class Mlp(nn.Module):
    """Four fully connected layers of 16 MiB each, with a break after every second one where asked."""

    def __init__(self, broken: bool = False) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(WIDTH, WIDTH) for _ in range(4)])
        self.break_after = (1, 3) if broken else ()

    def forward(self, x: Tensor) -> Tensor:
        for index, layer in enumerate(self.layers):
            x = layer(x).relu()
            if index in self.break_after:
                x = graph_break(x)
        return x


class Convs(nn.Module):
    """Six 3x3 convolutions at full resolution: a file of 195 KB that takes 54 MiB to run."""

    def __init__(self, broken: bool = False) -> None:
        super().__init__()
        widths = [IMAGE[1]] + [CHANNELS] * 6
        self.layers = nn.ModuleList(
            [nn.Conv2d(before, after, kernel_size=3, padding=1) for before, after in pairwise(widths)]
        )
        self.break_after = (1, 3) if broken else ()

    def forward(self, x: Tensor) -> Tensor:
        for index, layer in enumerate(self.layers):
            x = layer(x).relu()
            if index in self.break_after:
                x = graph_break(x)
        return x.mean((2, 3))


class KvCache(nn.Module):
    """A mutable buffer of 16 MiB that is written at one position per call."""

    def __init__(self, positions: int = 4096, width: int = 1024) -> None:
        super().__init__()
        self.register_buffer("cache", torch.zeros(1, positions, width))
        self.proj = nn.Linear(width, width)

    def forward(self, x: Tensor, position: Tensor) -> Tensor:
        self.cache[:, position] = self.proj(x)
        return (self.cache * x).sum((1,))


def rows(count: int) -> tuple[Tensor]:
    return (torch.randn(count, WIDTH),)


def mlp(broken: bool = False, delegate: bool = True) -> Any:
    return lower(export(Mlp(broken).eval(), rows(1)), xnnpack() if delegate else None)


def mlp_dynamic() -> Any:
    batch = Dim("batch", min=1, max=4096)
    return lower(export(Mlp().eval(), rows(8), dynamic_shapes=({0: batch},)), xnnpack())


def mlp_two_methods() -> Any:
    """One set of weights, two methods: stored once in the file."""
    model = Mlp().eval()
    return lower({"prefill": export(model, rows(64)), "decode": export(model, rows(1))}, xnnpack())


def convs(broken: bool = False) -> Any:
    return lower(export(Convs(broken).eval(), (torch.randn(IMAGE),)), xnnpack())


def kv_cache() -> Any:
    model = KvCache().eval().requires_grad_(False)
    return lower(export(model, (torch.randn(1, 1, 1024), torch.tensor([0]))), xnnpack())


MODELS = {
    "mlp.pte": mlp,
    "mlp_portable.pte": lambda: mlp(delegate=False),
    "mlp_three_delegates.pte": lambda: mlp(broken=True),
    "mlp_dynamic.pte": mlp_dynamic,
    "mlp_two_methods.pte": mlp_two_methods,
    "convs.pte": convs,
    "convs_three_delegates.pte": lambda: convs(broken=True),
    "kv_cache.pte": kv_cache,
}
