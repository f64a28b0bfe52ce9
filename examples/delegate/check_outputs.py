"""Runs the model in ExecuTorch's Python runtime, beside PyTorch: check_outputs.py MODEL.pte LIBRARY.so"""

from __future__ import annotations

import ctypes
import sys

import torch
from executorch.runtime import Runtime
from export_model import Model, model_inputs


def main(path: str, library: str) -> None:
    ctypes.CDLL(library)  # registers the backend
    method = Runtime.get().load_program(path).load_method("forward")
    assert method is not None
    torch.manual_seed(0)
    expected = Model().eval()(*model_inputs())
    (found,) = method.execute(list(model_inputs()))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    print(f"outputs of {library.rpartition('/')[2]} are PyTorch's")


main(*sys.argv[1:])
