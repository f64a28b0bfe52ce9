"""Real architectures in small: what ``etmem plan`` is held against. Random weights, seeded."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.export import export

from tests.models.lowering import lower, xnnpack

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
    """MobileNetV2 with half of its channels."""

    PLAN = ((1, 8, 1, 1), (6, 16, 2, 2), (6, 16, 3, 2), (6, 32, 4, 2), (6, 48, 3, 1), (6, 80, 3, 2), (6, 160, 1, 1))

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
    """A BERT encoder: embeddings, four layers, a pooler."""

    def __init__(self, width: int = 256) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(2000, width), nn.Embedding(TOKENS, width)
        self.norm = nn.LayerNorm(width)
        self.blocks = nn.ModuleList(Block(width, 4) for _ in range(4))
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
        self.blocks = nn.ModuleList(Block(width, 4) for _ in range(3))

    def forward(self, mel: torch.Tensor) -> torch.Tensor:
        x = nn.functional.gelu(self.second(nn.functional.gelu(self.first(mel)))).transpose(1, 2) + self.places
        for block in self.blocks:
            x = block(x)
        return x


class WhisperDecoder(nn.Module):
    def __init__(self, width: int = 192) -> None:
        super().__init__()
        self.words = nn.Embedding(1000, width)
        self.blocks = nn.ModuleList(Block(width, 4, cross=True) for _ in range(3))
        self.out = nn.Linear(width, 1000, bias=False)

    def forward(self, tokens: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
        x = self.words(tokens)
        for block in self.blocks:
            x = block(x, memory)
        return self.out(x)


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


def _float(model: nn.Module, inputs: tuple[Any, ...]) -> Any:
    return lower(export(model.eval(), inputs), xnnpack())


def _quantized(model: nn.Module, inputs: tuple[Any, ...], **config: bool) -> Any:
    """Int8 by the XNNPACK quantizer: per channel, static or dynamic activations."""
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=True, **config))
    prepared = prepare_pt2e(export(model.eval(), inputs).module(), quantizer)
    prepared(*inputs)
    return export(convert_pt2e(prepared), inputs)


def _dynamic(model: nn.Module, inputs: tuple[Any, ...]) -> Any:
    from executorch.backends.xnnpack.partition.config.xnnpack_config import ConfigPrecisionType
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

    partitioner = XnnpackPartitioner(config_precisions=ConfigPrecisionType.DYNAMIC_QUANT, per_op_mode=False)
    return lower(_quantized(model, inputs, is_dynamic=True), partitioner)


def _whisper() -> Any:
    encoder, decoder = WhisperEncoder().eval(), WhisperDecoder().eval()
    tokens = torch.zeros(1, 16, dtype=torch.long)
    methods = {
        "encoder": export(encoder, (torch.randn(1, 80, FRAMES),)),
        "decoder": export(decoder, (tokens, torch.randn(1, FRAMES // 2, 192))),
    }
    return lower(methods, xnnpack())


MODELS = {
    "mobilenet.pte": lambda: _float(MobileNet(), _image()),
    "resnet.pte": lambda: _float(ResNet(), _image()),
    "bert.pte": lambda: _float(Bert(), (torch.zeros(1, TOKENS, dtype=torch.long),)),
    "whisper.pte": _whisper,
    "mobilenet_int8.pte": lambda: lower(_quantized(MobileNet(), _image()), xnnpack()),
    "resnet_int8.pte": lambda: lower(_quantized(ResNet(), _image()), xnnpack()),
    "perceptron_dynamic_int8.pte": lambda: _dynamic(Perceptron(), (torch.randn(8, 1024),)),
    "bert_dynamic_int8.pte": lambda: _dynamic(Bert(), (torch.zeros(1, TOKENS, dtype=torch.long),)),
}
