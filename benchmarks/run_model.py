"""What a user of another profiler runs: the model twice, in ExecuTorch's Python runtime. MODEL WIDTH."""

import sys

import torch
from executorch.runtime import Runtime

method = Runtime.get().load_program(sys.argv[1]).load_method("forward")
row = torch.rand(1, int(sys.argv[2]))
for _ in range(2):
    method.execute([row])
