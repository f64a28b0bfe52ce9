"""Runs methods of a program that needs a library of backends: LIBRARY MODEL ITERATIONS METHOD ..."""

import ctypes
import sys

import torch
from executorch.runtime import Runtime

library, path, iterations, *names = sys.argv[1:]
runtime = Runtime.get()
ctypes.CDLL(library)  # its constructor registers them with the runtime that it is linked to
program = runtime.load_program(path)
methods = {name: program.load_method(name) for name in names}
for method in methods.values():
    for _ in range(int(iterations)):
        method.execute([torch.ones(4)])
