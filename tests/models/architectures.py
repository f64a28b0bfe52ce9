"""Real architectures in small: what ``etmem plan`` is held against. Random weights, seeded."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.export import export

from tests.models.lowering import lower, xnnpack
from tests.models.quantizing import dynamic_int8, static_int8

IMAGE = 96
TOKENS = 64
FRAMES = 128


def _unit(into: int, out: int, stride: int = 1, kernel: int = 3, groups: int = 1, act: bool = True) -> nn.Sequential:
    layers: list[nn.Module] = [
        nn.Conv2d(into, out, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(out),
    ]
    return nn.Sequential(*layers, nn.ReLU6()) if act else nn.Sequential(*layers)


class InvertedResidual(nn.Module):
    def __init__(self, into: int, out: int, stride: int, expand: int) -> None:
        super().__init__()
        self.joined = stride == 1 and into == out
        middle = into * expand
        self.layers = nn.Sequential(
            *([_unit(into, middle, kernel=1)] if expand > 1 else []),
            _unit(middle, middle, stride, groups=middle),
            _unit(middle, out, kernel=1, act=False),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.layers(x) if self.joined else self.layers(x)


class MobileNet(nn.Module):
    """MobileNetV2 with half of its channels, and at most two blocks of a kind."""

    PLAN = ((1, 8, 1, 1), (6, 16, 2, 2), (6, 16, 2, 2), (6, 32, 2, 2), (6, 48, 1, 1), (6, 80, 2, 2), (6, 160, 1, 1))

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [_unit(3, 16, 2)]
        into = 16
        for expand, out, count, stride in self.PLAN:
            for index in range(count):
                layers.append(InvertedResidual(into, out, stride if index == 0 else 1, expand))
                into = out
        layers.append(_unit(into, 1280, kernel=1))
        self.features = nn.Sequential(*layers)
        self.classes = nn.Linear(1280, 1000)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classes(self.features(x).mean((2, 3)))


class Residual(nn.Module):
    def __init__(self, into: int, out: int, stride: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(_unit(into, out, stride), _unit(out, out, act=False))
        self.shortcut = _unit(into, out, stride, kernel=1, act=False) if stride > 1 or into != out else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.layers(x) + self.shortcut(x))


class ResNet(nn.Module):
    """ResNet-18 with half of its channels."""

    def __init__(self) -> None:
        super().__init__()
        widths = (32, 64, 128, 256)
        layers: list[nn.Module] = [_unit(3, 32, 2, kernel=7), nn.MaxPool2d(3, 2, 1)]
        into = 32
        for index, width in enumerate(widths):
            layers += [Residual(into, width, 1 if index == 0 else 2), Residual(width, width, 1)]
            into = width
        self.features = nn.Sequential(*layers)
        self.classes = nn.Linear(into, 1000)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classes(self.features(x).mean((2, 3)))


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = (
            layer(source).view(batch, source.shape[1], self.heads, width // self.heads).transpose(1, 2)
            for layer, source in ((self.q, x), (self.k, memory), (self.v, memory))
        )
        scores = torch.matmul(q, k.transpose(-2, -1)) * (width // self.heads) ** -0.5
        joined = torch.matmul(torch.softmax(scores, -1), v)
        return self.out(joined.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width: int, heads: int, cross: bool = False) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3 if cross else 2))
        self.attention = Attention(width, heads)
        self.cross = Attention(width, heads) if cross else None
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor, memory: torch.Tensor | None = None) -> torch.Tensor:
        normed = self.norms[0](x)
        x = x + self.attention(normed, normed)
        if self.cross is not None and memory is not None:
            x = x + self.cross(self.norms[2](x), memory)
        return x + self.narrow(nn.functional.gelu(self.wide(self.norms[1](x))))


class Bert(nn.Module):
    """A BERT encoder: embeddings, two layers, a pooler."""

    def __init__(self, width: int = 256) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(2000, width), nn.Embedding(TOKENS, width)
        self.norm = nn.LayerNorm(width)
        self.blocks = nn.ModuleList(Block(width, 4) for _ in range(2))
        self.pool = nn.Linear(width, width)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.norm(self.words(tokens) + self.places.weight)
        for block in self.blocks:
            x = block(x)
        return torch.tanh(self.pool(x[:, 0]))


class WhisperEncoder(nn.Module):
    def __init__(self, width: int = 192) -> None:
        super().__init__()
        self.first, self.second = nn.Conv1d(80, width, 3, padding=1), nn.Conv1d(width, width, 3, 2, 1)
        self.places = nn.Parameter(torch.randn(1, FRAMES // 2, width))
        self.blocks = nn.ModuleList(Block(width, 4) for _ in range(2))

    def forward(self, mel: torch.Tensor) -> torch.Tensor:
        x = nn.functional.gelu(self.second(nn.functional.gelu(self.first(mel)))).transpose(1, 2) + self.places
        for block in self.blocks:
            x = block(x)
        return x


class WhisperDecoder(nn.Module):
    def __init__(self, width: int = 192) -> None:
        super().__init__()
        self.words = nn.Embedding(1000, width)
        self.blocks = nn.ModuleList(Block(width, 4, cross=True) for _ in range(2))
        self.out = nn.Linear(width, 1000, bias=False)

    def forward(self, tokens: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
        x = self.words(tokens)
        for block in self.blocks:
            x = block(x, memory)
        return self.out(x)


class Up(nn.Module):
    """One step of a U-Net's way up: twice the size, then what the way down left at that size."""

    def __init__(self, into: int, out: int, learned: bool) -> None:
        super().__init__()
        self.grow = nn.ConvTranspose2d(into, out, 2, 2) if learned else _unit(into, out, kernel=1)
        self.learned = learned
        self.join = _unit(2 * out, out)

    def forward(self, x: torch.Tensor, beside: torch.Tensor) -> torch.Tensor:
        if not self.learned:
            x = nn.functional.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
        return self.join(torch.cat((self.grow(x), beside), 1))


class UNet(nn.Module):
    """A U-Net for segmentation: transposed convolutions and bilinear resizes on the way up."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.down, self.deep = _unit(3, 16), _unit(16, 32, 2), _unit(32, 64, 2)
        self.first, self.second = Up(64, 32, learned=True), Up(32, 16, learned=False)
        self.classes = nn.Conv2d(16, 4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = self.enter(x)
        middle = self.down(wide)
        return self.classes(self.second(self.first(self.deep(middle), middle), wide))


class Layer(nn.Module):
    """A Llama layer: root-mean-square norms, grouped queries, a gated perceptron, a cache of keys and values."""

    def __init__(self, width: int, heads: int, shared: int, context: int) -> None:
        super().__init__()
        self.heads, self.shared, self.each = heads, shared, width // heads
        self.q, self.k, self.v, self.out = (
            nn.Linear(width, size, bias=False) for size in (width, shared * self.each, shared * self.each, width)
        )
        self.gate, self.up, self.narrow = (
            nn.Linear(before, after, bias=False)
            for before, after in ((width, 3 * width), (width, 3 * width), (3 * width, width))
        )
        self.norms = nn.ModuleList(nn.RMSNorm(width) for _ in range(2))
        self.register_buffer("keys", torch.zeros(1, context, shared, self.each))
        self.register_buffer("values", torch.zeros(1, context, shared, self.each))

    def forward(self, x: torch.Tensor, position: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        normed = self.norms[0](x)
        self.keys[:, position] = self.k(normed).view(1, 1, self.shared, self.each)
        self.values[:, position] = self.v(normed).view(1, 1, self.shared, self.each)
        q = self.q(normed).view(1, 1, self.heads, self.each).transpose(1, 2)
        k, v = (
            each.repeat_interleave(self.heads // self.shared, 2).transpose(1, 2) for each in (self.keys, self.values)
        )
        scores = torch.matmul(q, k.transpose(-2, -1)) * self.each**-0.5 + mask
        x = x + self.out(torch.matmul(torch.softmax(scores, -1), v).transpose(1, 2).reshape(1, 1, -1))
        normed = self.norms[1](x)
        return x + self.narrow(nn.functional.silu(self.gate(normed)) * self.up(normed))


class Decoder(nn.Module):
    """A Llama-shaped decoder that makes one token per call."""

    CONTEXT = 64

    def __init__(self, width: int = 256) -> None:
        super().__init__()
        self.words = nn.Embedding(1000, width)
        self.layers = nn.ModuleList(Layer(width, 8, 4, self.CONTEXT) for _ in range(2))
        self.norm, self.head = nn.RMSNorm(width), nn.Linear(width, 1000, bias=False)

    def forward(self, token: torch.Tensor, position: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        x = self.words(token)
        for layer in self.layers:
            x = layer(x, position, mask)
        return self.head(self.norm(x))


class Perceptron(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 40)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


def _image() -> tuple[torch.Tensor]:
    return (torch.randn(1, 3, IMAGE, IMAGE),)


Methods = dict[str, tuple[nn.Module, tuple[Any, ...]]]
"""By name: what a method computes, and inputs for it."""


def _methods() -> dict[str, Methods]:
    tokens = torch.zeros(1, 16, dtype=torch.long)
    step = (torch.zeros(1, 1, dtype=torch.long), torch.zeros(1, dtype=torch.long), torch.zeros(1, 1, 1, 64))
    memory = torch.randn(1, FRAMES // 2, 192)
    return {
        "mobilenet": {"forward": (MobileNet(), _image())},
        "resnet": {"forward": (ResNet(), _image())},
        "bert": {"forward": (Bert(), (torch.zeros(1, TOKENS, dtype=torch.long),))},
        "whisper": {
            "encoder": (WhisperEncoder(), (torch.randn(1, 80, FRAMES),)),
            "decoder": (WhisperDecoder(), (tokens, memory)),
        },
        "decoder": {"forward": (Decoder(), step)},
        "unet": {"forward": (UNet(), (torch.randn(1, 3, 64, 64),))},
    }


def _float(methods: Methods) -> Any:
    return lower({name: export(model.eval(), inputs) for name, (model, inputs) in methods.items()}, xnnpack())


ARCHITECTURES = ("mobilenet", "resnet", "bert", "whisper", "decoder", "unet")
PRECISIONS = {"": _float, "_int8": static_int8, "_dynamic_int8": dynamic_int8}
MODELS = {
    f"{name}{suffix}.pte": lambda name=name, make=make: make(_methods()[name])
    for name in ARCHITECTURES
    for suffix, make in PRECISIONS.items()
} | {
    "perceptron_dynamic_int8.pte": lambda: dynamic_int8({"forward": (Perceptron(), (torch.randn(8, 1024),))}),
}
