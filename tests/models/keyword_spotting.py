"""ExecuTorch's keyword spotter for Cortex-M, int8: ``python -m tests.models.keyword_spotting FILE.pte``.

MLPerf Tiny's DS-CNN, as ExecuTorch's Arduino example exports it, with random weights and calibration: what it needs of
memory does not depend on them. Needs ``pip install "executorch[ethos-u]"``; the tests keep the file that it writes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch.export import export


def features() -> torch.Tensor:
    return (torch.rand(1, 1, 49, 10) * 2 - 1).to(memory_format=torch.channels_last)


def program() -> bytes:
    from executorch.backends.cortex_m.edge_compile_config import cortex_m_edge_compile_config
    from executorch.backends.cortex_m.passes.cortex_m_pass_manager import CortexMPassManager
    from executorch.backends.cortex_m.quantizer.quantizer import CortexMQuantizer
    from executorch.backends.cortex_m.target_config import CortexM, CortexMTargetConfig
    from executorch.backends.transforms.duplicate_dynamic_quant_chain import DuplicateDynamicQuantChainPass
    from executorch.examples.models.mlperf_tiny.ds_cnn import DSCNNKWS
    from executorch.exir import to_edge
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    inputs = (features(),)
    prepared = prepare_pt2e(
        export(DSCNNKWS().eval(), inputs, strict=True).module(check_guards=False), CortexMQuantizer()
    )  # fmt: skip
    prepared(features())
    converted = convert_pt2e(prepared, fold_quantize=True)
    DuplicateDynamicQuantChainPass()(converted)
    edge = to_edge(export(converted, inputs), compile_config=cortex_m_edge_compile_config())
    target = CortexMTargetConfig(cpu=CortexM.M33)
    passes = CortexMPassManager(edge.exported_program(), CortexMPassManager.pass_list, target_config=target)
    edge._edge_programs["forward"] = passes.transform()
    return bytes(edge.to_executorch().buffer)


if __name__ == "__main__":
    torch.manual_seed(0)
    Path(sys.argv[1]).write_bytes(program())
