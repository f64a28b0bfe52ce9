"""A small network for an Ethos-U55: ``python -m tests.models.ethos_u FILE.pte`` writes the file that the tests keep.

Needs ``pip install "executorch[ethos-u]"``: Vela and the TOSA tools, which the tests do without.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.export import export


class Words(nn.Module):
    """The first layers of a keyword spotter: no pooling, whose decomposition this ExecuTorch and torch disagree on."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 16, (10, 4), 2, (4, 1)),
            nn.ReLU(),
            nn.Conv2d(16, 16, 3, padding=1, groups=16),
            nn.ReLU(),
            nn.Conv2d(16, 16, 1),
            nn.ReLU(),
        )
        self.classes = nn.Linear(16 * 24 * 5, 12)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classes(self.layers(x).flatten(1))


def program() -> Any:
    from executorch.backends.arm.ethosu import EthosUCompileSpec, EthosUPartitioner
    from executorch.backends.arm.quantizer import EthosUQuantizer, get_symmetric_quantization_config
    from executorch.exir import ExecutorchBackendConfig, to_edge_transform_and_lower
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    model, inputs = Words().eval(), (torch.randn(1, 1, 49, 10),)
    spec = EthosUCompileSpec(
        "ethos-u55-128", system_config="Ethos_U55_High_End_Embedded", memory_mode="Shared_Sram"
    )  # fmt: skip
    quantizer = EthosUQuantizer(spec).set_global(get_symmetric_quantization_config())
    prepared = prepare_pt2e(export(model, inputs).module(), quantizer)
    prepared(*inputs)
    lowered = to_edge_transform_and_lower(
        export(convert_pt2e(prepared), inputs), partitioner=[EthosUPartitioner(spec)]
    )  # fmt: skip
    return lowered.to_executorch(ExecutorchBackendConfig(extract_delegate_segments=False))


if __name__ == "__main__":
    torch.manual_seed(0)
    Path(sys.argv[1]).write_bytes(program().buffer)
