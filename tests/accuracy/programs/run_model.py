"""Runs every method of a program with ExecuTorch's Python runtime: MODEL INPUTS_JSON ITERATIONS [OUTPUTS.npz].

INPUTS_JSON: method -> [[dtype, shape], ...]. Floats are random with a seed, integers zero.
"""

import json
import sys

import torch
from executorch.runtime import Runtime

path, inputs, iterations, *outputs = sys.argv[1:]
program = Runtime.get().load_program(path)
torch.manual_seed(0)
results = {}
specs_by_method = json.loads(inputs)
methods = {name: program.load_method(name) for name in specs_by_method}
for name, specs in specs_by_method.items():
    arguments = []
    for dtype, shape in specs:
        kind = getattr(torch, dtype)
        arguments.append(torch.rand(shape, dtype=kind) if kind.is_floating_point else torch.zeros(shape, dtype=kind))
    for iteration in range(int(iterations)):
        for index, value in enumerate(methods[name].execute(arguments)):
            results[f"{name}_{iteration}_{index}"] = value.numpy().copy()
if outputs:
    import numpy as np

    np.savez(outputs[0], **results)
