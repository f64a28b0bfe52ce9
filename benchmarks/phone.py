"""``python benchmarks/phone.py``: the whole command for a phone's CPU, after the first, the best of three.

The language model has 1 GB of random weights and is exported on first use, which takes minutes and 12 GB of memory.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.measuring import MIB, Row, run, show  # noqa: E402
from etmem.capture import build  # noqa: E402
from tests.models.registry import model_path  # noqa: E402

TIMES = 3
LARGE = {
    "vocab_size": 8192,
    "hidden_size": 2048,
    "intermediate_size": 5632,
    "num_hidden_layers": 5,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 64,
}


def large_language_model() -> Path:
    """The program, exported once into the cache."""
    path = build.cache() / "benchmark-models" / "llama-1gb.pte"
    if not path.is_file():
        import torch

        from tests.models.export import write
        from tests.models.llama import llama

        path.parent.mkdir(parents=True, exist_ok=True)
        torch.manual_seed(0)
        partial = path.with_suffix(".partial")
        with torch.no_grad():
            write(llama(**LARGE), partial)
        partial.rename(path)
    return path


def main() -> None:
    models = {"convs": model_path("convs"), "mlp": model_path("mlp"), "language model": large_language_model()}
    bars = {"convs": "1.5 s", "mlp": "1.5 s", "language model": "10 s"}
    rows = []
    with tempfile.TemporaryDirectory(prefix="etmem-bench-") as folder:
        for name, path in models.items():
            command = (
                *(sys.executable, "-m", "etmem", "profile", path, "--arch", "aarch64", "-q"),
                *("--output", Path(folder) / "phone.etmem"),
            )
            run(command)  # fetches and builds what is missing
            best = min(run(command).seconds for _ in range(TIMES))
            size = f"{path.stat().st_size / MIB:,.1f} MiB"
            rows.append(Row(f"{name}, cortex-a76", f"{best:.2f} s", size, "", bars[name]))
    show(rows)


if __name__ == "__main__":
    main()
