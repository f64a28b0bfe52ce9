"""One process with two ExecuTorchs: MODEL and the path of another installation's ``_portable_lib``."""

import importlib.util
import sys

import torch
from executorch.runtime import Runtime

model, library = sys.argv[1:]
own = Runtime.get()
spec = importlib.util.spec_from_file_location("_portable_lib", library)
assert spec is not None
assert spec.loader is not None
other = importlib.util.module_from_spec(spec)
spec.loader.exec_module(other)

inputs = [torch.ones(1, 3, 256, 256)]
method = own.load_program(model).load_method("forward")
first = method.execute(inputs)[0]
second = other._load_for_executorch(model).forward(inputs)[0]
assert torch.equal(first, second)
