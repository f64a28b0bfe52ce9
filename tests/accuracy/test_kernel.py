"""Counted peaks beside the kernel's own accounting of the same runner without etmem.

benchmarks/kernel.py has all models, ten runs each, and a memory cgroup's peak: docs/reference/accuracy.md.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import kernel
from benchmarks.measuring import peak_rss
from benchmarks.models import runner_command
from etmem.capture.options import ProfileOptions
from tests.accuracy.captures import MIB, profile
from tests.models.registry import model_path

PROFILER = 1.5 * MIB
"""The agent, its hooks and its buffers are in one of the two processes."""
LIBRARY_PAGES = 2 * MIB
"""Of libraries, the kernel maps more or fewer around each fault, from run to run."""


@pytest.mark.parametrize("name", ["convs", "mlp", "mlp_dynamic", "llama", "mobilenet"])
def test_the_peak_is_the_bare_process_s(name: str, tmp_path: Path) -> None:
    """GIVEN the kernel's highest RSS of the runner alone THEN the recorded run's high water is that, and what etmem
    counted is what it grew by."""
    summary = profile(name)
    command = runner_command(tmp_path, ProfileOptions(program=model_path(name)))
    bare = min(peak_rss(command) for _ in range(3))
    water = max(one.high_water_bytes for one in summary.high_waters)
    assert water == pytest.approx(bare, abs=PROFILER + LIBRARY_PAGES)
    largest = max(summary.high_waters, key=lambda one: one.high_water_bytes)
    assert largest.counted_bytes + largest.before_bytes == pytest.approx(bare, abs=PROFILER + LIBRARY_PAGES)
    assert largest.counted_bytes > MIB


def test_the_page_has_every_model() -> None:
    rows = [line for line in kernel.PAGE.read_text().splitlines() if line.startswith("| ")]
    names = [line.split(" | ")[0].removeprefix("| ") for line in rows]
    assert names == ["model", *(name.partition(".")[0] for name in kernel.MODELS)]
