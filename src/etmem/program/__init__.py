"""ExecuTorch's program files as data: read without torch, without executorch, without reading them whole."""

from etmem.program.dtypes import DTYPES, DType
from etmem.program.model import (
    DelegateCall,
    Dynamism,
    ExternalData,
    KernelCall,
    Plan,
    Program,
    Tensor,
    ValueKind,
)
from etmem.program.reader import read, read_bytes, read_data
from etmem.program.signature import InputInfo, inputs, is_constant_method, outputs, require_plan

__all__ = [
    "DTYPES",
    "DType",
    "DelegateCall",
    "Dynamism",
    "ExternalData",
    "InputInfo",
    "KernelCall",
    "Plan",
    "Program",
    "Tensor",
    "ValueKind",
    "inputs",
    "is_constant_method",
    "outputs",
    "read",
    "read_bytes",
    "read_data",
    "require_plan",
]
