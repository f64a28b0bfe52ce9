"""``make bench``: etmem's figures beside other profilers', measured in turn in one run. ``--quick`` repeats less. A
profiler that is not installed has a row that says what installs it.

Ratios are what counts: the machine's speed is in both sides.
"""

from __future__ import annotations

import sys
import tempfile
from itertools import chain
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from benchmarks import clients, events, models, reports  # noqa: E402
from benchmarks.measuring import run, show, told  # noqa: E402
from tests.models.registry import model_path  # noqa: E402


def main() -> None:
    times = 3 if "--quick" in sys.argv[1:] else 7
    with tempfile.TemporaryDirectory(prefix="etmem-bench-") as folder:
        scratch = Path(folder)
        # Builds hooks and runner where that has not been done: once per ExecuTorch, not per command.
        warm = ("-m", "etmem", "profile", model_path("mlp"), "--output", scratch / "warm.etmem")
        run((sys.executable, *warm))
        parts = (module.rows(scratch, times) for module in (events, clients, models, reports))
        show(list(told(chain.from_iterable(parts))))


if __name__ == "__main__":
    main()
