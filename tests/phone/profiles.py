"""Profiles of the test models on other CPUs, once per test process."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import etmem
from etmem.model.summary import Summary
from tests.models.registry import model_path

CPUS = ("cortex-a53", "cortex-a76", "max", "haswell", "host")
PIXELS, TAPS, POINTER = 256 * 256, 3 * 3, 8
TILES = {"cortex-a53": 6, "cortex-a76": 6, "max": 16, "haswell": 5}
"""Pixels that one call of XNNPACK's 32-bit float convolution computes on each."""
HOST_TILES = {"avx512": 7, "avx2": 5, "neon": 6, "sme": 16}
SME_WORKSPACE = {
    # A packed image of the first operand: of a thread's tile in a convolution, of the whole in a product.
    "convs": 2 * 18432,
    "convs_three_delegates": 2 * 18432,
    "mlp_two_methods": 64 * 2048 * 4,
}
"""Bytes of workspace that SME's kernels need on top, with two threads."""


@cache
def profiled(name: str, cpu: str, **options: object) -> Summary:
    """``etmem.profile`` of a test model; without computing, on this machine as well."""
    with tempfile.TemporaryDirectory() as folder:
        given = {"dry": True, "cpu": cpu, "output": Path(folder) / "trace.etmem", **options}
        return etmem.profile(model_path(name), **given).summary


def indirection_bytes(tile: int) -> int:
    """Of one convolution of ``convs``."""
    return -(-PIXELS // tile) * tile * TAPS * POINTER


def tile(cpu: str, summary: Summary) -> int | None:
    """None on a host of another instruction set than those."""
    return HOST_TILES.get(summary.target.isa) if cpu == "host" else TILES[cpu]


def counted(summary: Summary) -> list[tuple[object, ...]]:
    """All that is compared between two runs: owners and categories at both peaks, and every block that is large."""
    rows: list[tuple[object, ...]] = []
    for at, peak in (("load", summary.peaks.load), ("inference", summary.peaks.inference)):
        assert peak is not None
        for held in peak.moment.owners:
            if held.owner != "profiler":
                rows += [(at, held.owner, held.instance, part) for part in held.categories]
    rows += [(b.at, b.owner, b.category, b.requested_bytes, b.count) for b in summary.largest_blocks]
    return sorted(rows, key=str)
