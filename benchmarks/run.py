"""``make bench``: etmem's figures beside other profilers', measured in turn in one run. ``--quick`` repeats less.

Ratios are what counts: the machine's speed is in both sides.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from benchmarks import events, models, reports  # noqa: E402
from benchmarks.measuring import run, show  # noqa: E402
from tests.models.registry import model_path  # noqa: E402


def main() -> None:
    missing = [name for name in ("heaptrack", "valgrind") if shutil.which(name) is None]
    if missing:
        sys.exit(f"not installed: {' '.join(missing)} (Debian has packages of these names)")
    times = 3 if "--quick" in sys.argv[1:] else 7
    with tempfile.TemporaryDirectory(prefix="etmem-bench-") as folder:
        scratch = Path(folder)
        # Builds hooks and runner where that has not been done: once per ExecuTorch, not per command.
        warm = ("-m", "etmem", "profile", model_path("mlp"), "--output", scratch / "warm.etmem")
        run((sys.executable, *warm))
        show([*events.rows(scratch, times), *models.rows(scratch, times), *reports.rows(scratch, times)])


if __name__ == "__main__":
    main()
