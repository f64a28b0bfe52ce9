"""What etmem counts beside what the kernel counts, over all test models, ten runs each:

    python benchmarks/kernel.py [--runs N] [--write] [MODEL ...]

``--write`` puts the table into docs/reference/accuracy.md. The cgroup's peak is that of the bare runner, without etmem,
in a memory cgroup of its own, which takes root; elsewhere the column is empty.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

import etmem  # noqa: E402
from benchmarks.models import runner_command  # noqa: E402
from etmem.capture.job import prepare  # noqa: E402
from etmem.capture.options import ProfileOptions  # noqa: E402
from etmem.model.summary import Summary  # noqa: E402
from tests.models.registry import FAMILIES, model_path  # noqa: E402

PAGE = ROOT / "docs/reference/accuracy.md"
MODELS = (
    *FAMILIES["cases"],
    "llama.pte",
    *FAMILIES["architectures"],
    *FAMILIES["quantized"],
    "many_operators.pte",
    "openvino_cnn.pte",
)
KIB, MIB = 1024, 1024 * 1024
COLUMNS = ("counted", "spread", "high water", "spread", "other", "unaccounted", "cgroup", "spread", "less private")
HEAD = f"""# What etmem counts beside what the kernel counts

`python benchmarks/kernel.py --write` wrote this page, on Linux x86-64 with executorch 1.5.1: ten runs of each model in
a process of its own. MiB; what begins with a sign, and every spread (largest less smallest run), is in KiB.

| model | {" | ".join(COLUMNS)} |
|---{"|---:" * len(COLUMNS)}|
"""
TAIL = """
- **counted**: the peak of inference, private and file-backed bytes of ExecuTorch and its delegates, from events. Where
  its spread is not 0, the delegate itself allocates differently from run to run (OpenVINO's own threads).
- **high water**: the kernel's highest RSS in inference (`VmHWM`, reset at each phase's edge); **other**: what of it is
  neither counted nor was there before inference. It is negative where counted bytes were not touched, and large where a
  mapped file is counted from its load on and its pages come in inference (`mlp_portable`).
- **unaccounted**: the largest, over the runs, of what the balance at the end of the last inference leaves over of RSS.
- **cgroup**: the peak that the kernel charged a memory cgroup which held the same runner without etmem;
  **less private**: that less the process's requested private bytes at its peak (`process_private_bytes`). What is over
  is malloc's own, relocated pages, stacks and page tables; below 0 are pages that were allocated and never touched.
"""


@dataclass(frozen=True)
class Measured:
    summaries: tuple[Summary, ...]
    cgroup_bytes: tuple[int, ...]


def measured(name: str, runs: int) -> Measured:
    path = model_path(name)
    with tempfile.TemporaryDirectory(prefix="etmem-kernel-") as folder:
        scratch = Path(folder)
        summaries = tuple(etmem.profile(path, output=scratch / "run.etmem").summary for _ in range(runs))
        options = ProfileOptions(program=path)
        command = runner_command(scratch, options)
        variables = {**os.environ, **prepare(options, scratch).variables(os.environ)}
        path.read_bytes()  # its pages are in the cache, and charged to this process
        peaks = tuple(filter(None, (cgroup_peak(command, variables) for _ in range(runs))))
    return Measured(summaries, peaks)


def cgroup_peak(command: Sequence[str], variables: dict[str, str]) -> int | None:
    """Bytes that the kernel charged a cgroup which held only this command; None where none can be made."""
    found = _memory_controller()
    if found is None:
        return None
    root, peak = found
    group = root / f"etmem-{os.getpid()}"
    try:
        group.mkdir()
    except OSError:
        return None
    try:
        enter = 'echo $$ > "$0/cgroup.procs" && exec "$@"'
        subprocess.run(
            ["sh", "-c", enter, str(group), *command],
            env=variables,
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        return int((group / peak).read_text())
    finally:
        group.rmdir()


def _memory_controller() -> tuple[Path, str] | None:
    """Where a memory cgroup is made, and the file that tells its peak: version 2, else version 1."""
    unified, legacy = Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/memory")
    controllers = unified / "cgroup.subtree_control"
    if controllers.is_file() and "memory" in controllers.read_text().split():
        return unified, "memory.peak"
    return (legacy, "memory.max_usage_in_bytes") if (legacy / "memory.max_usage_in_bytes").is_file() else None


def cells(name: str, found: Measured) -> tuple[str, ...]:
    summaries = found.summaries
    counted, high, other, left, private = [], [], [], [], []
    for summary in summaries:
        assert summary.peaks.inference is not None
        moment = summary.peaks.inference.moment
        counted.append(moment.private_bytes + moment.file_bytes)
        (water,) = [one for one in summary.high_waters if one.at == "inference"]
        high.append(water.high_water_bytes)
        other.append(water.other_bytes)
        left.append(summary.balances[-1].unaccounted_bytes)
        private.append(max(phase.process_private_bytes for phase in summary.phases))
    row = [name.partition(".")[0], f"{_mid(counted) / MIB:.2f}", _spread(counted), f"{_mid(high) / MIB:.2f}"]
    row += [_spread(high), f"{_mid(other) / KIB:+,.0f}", f"{max(left, key=abs) / KIB:+,.0f}"]
    if not found.cgroup_bytes:
        return (*row, "", "", "")
    peak = _mid(found.cgroup_bytes)
    return (*row, f"{peak / MIB:.2f}", _spread(found.cgroup_bytes), f"{(peak - _mid(private)) / KIB:+,.0f}")


def _mid(values: Sequence[int]) -> int:
    return sorted(values)[len(values) // 2]


def _spread(values: Sequence[int]) -> str:
    return f"{(max(values) - min(values)) / KIB:,.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("models", nargs="*")
    given = parser.parse_args()
    lines = []
    for name in given.models or MODELS:
        lines.append(f"| {' | '.join(cells(name, measured(name, given.runs)))} |")
        print(lines[-1], flush=True)
    if given.write:
        PAGE.write_text(HEAD + "\n".join(lines) + "\n" + TAIL)


if __name__ == "__main__":
    main()
