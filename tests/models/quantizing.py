"""The ways to quantize for XNNPACK: int8 with static or dynamic activations, and int4 weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.export import export

from tests.models.lowering import lower, xnnpack

Methods = Mapping[str, tuple[nn.Module, tuple[Any, ...]]]
"""By name: what a method computes, and inputs for it."""


def static_int8(methods: Methods) -> Any:
    return lower({name: quantized(*method) for name, method in methods.items()}, xnnpack())


def dynamic_int8(methods: Methods) -> Any:
    """What is no matrix multiplication stays in 32-bit floats."""
    programs = {name: quantized(*method, is_dynamic=True) for name, method in methods.items()}
    return lower_in_turn(programs)


def lower_in_turn(programs: Mapping[str, Any]) -> Any:
    """First what is quantized on the fly, as whole operators; then the rest."""
    from executorch.exir import to_edge_transform_and_lower

    partitioners = {name: [on_the_fly(), xnnpack()] for name in programs}
    return to_edge_transform_and_lower(dict(programs), partitioner=partitioners).to_executorch()


def int4(model: nn.Module, inputs: tuple[Any, ...], *, block: int) -> Any:
    """Weights of four bits with a scale for each ``block`` of inputs (0: for each output)."""
    from torchao.quantization import Int8DynamicActivationIntxWeightConfig, PerAxis, PerGroup, quantize_

    scales = PerGroup(block) if block else PerAxis(0)
    quantize_(
        model.eval(), Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int4, weight_granularity=scales)
    )  # fmt: skip
    return export(model, inputs)


def quantized(model: nn.Module, inputs: tuple[Any, ...], **config: bool) -> Any:
    """An exported program with int8 weights per channel, by the XNNPACK quantizer."""
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=True, **config))
    prepared = prepare_pt2e(export(model.eval(), inputs).module(), quantizer)
    prepared(*inputs)
    return export(convert_pt2e(prepared), inputs)


def on_the_fly() -> Any:
    from executorch.backends.xnnpack.partition.config.xnnpack_config import ConfigPrecisionType
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

    return XnnpackPartitioner(config_precisions=ConfigPrecisionType.DYNAMIC_QUANT, per_op_mode=False)
