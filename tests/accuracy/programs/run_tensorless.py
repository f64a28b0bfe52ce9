"""``python run_tensorless.py MODEL.pte``: two inferences through whichever ExecuTorch comes first in sys.path."""

import sys

import torch  # noqa: F401 -- its libraries must be there before ExecuTorch's
from executorch.extension.pybindings.portable_lib import _load_for_executorch

module = _load_for_executorch(sys.argv[1])
for _ in range(2):
    assert module.run_method("forward", [3]) == [3]
