"""An int8 network: on XNNPACK, and on portable kernels, where it needs the quantized kernel library."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.export import export

from tests.models.lowering import lower, xnnpack

WIDTH = 256


def int8_program() -> Any:
    """An exported program with quantize and dequantize operators around each layer."""
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 16)).eval()
    rows = (torch.randn(1, WIDTH),)
    quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config())
    prepared = prepare_pt2e(export(model, rows).module(), quantizer)
    prepared(*rows)
    return export(convert_pt2e(prepared), rows)


def quantized_portable() -> Any:
    import executorch.kernels.quantized  # noqa: F401  # registers the out variants that lowering looks for

    return lower(int8_program())


MODELS = {
    "quantized_xnnpack.pte": lambda: lower(int8_program(), xnnpack()),
    "quantized_portable.pte": quantized_portable,
}
