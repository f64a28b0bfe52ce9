"""The notebooks under examples/ run as they are, and end in what their text says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))


def test_there_is_one() -> None:
    assert NOTEBOOKS


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_cell_runs(notebook, tmp_path) -> None:
    cells = json.loads(notebook.read_text())["cells"]
    assert not any(cell.get("outputs") for cell in cells)
    script = tmp_path / "cells.py"
    script.write_text("\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", script], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "LINES AT THE PEAK OF INFERENCE" in done.stdout
    assert "planned, aten::cumsum.out" in done.stdout
    assert "torch.cumsum(wide, dim=-1)" in done.stdout
    assert "native_call_cumsum.out" in done.stdout
    assert "% less" in done.stdout
