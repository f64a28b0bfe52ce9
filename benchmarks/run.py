"""``make bench``: etmem's figures beside memray's, measured alternately in one run. ``--quick`` repeats less.

Ratios are what counts: the machine's speed is in both sides.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from etmem.capture import build, executorch, plan  # noqa: E402
from etmem.capture.job import prepare  # noqa: E402
from etmem.capture.launch import Launch, environment  # noqa: E402
from etmem.capture.options import ProfileOptions  # noqa: E402
from tests.models.registry import model_path  # noqa: E402

WIDTH = "2048"
MIB = 1024 * 1024
PAIRS = 2_000_000


@dataclass(frozen=True)
class Row:
    """One line of the table; ``bar`` is the most that it may be."""

    what: str
    etmem: str
    other: str
    ratio: str
    bar: str


@dataclass(frozen=True)
class Ran:
    seconds: float
    peak_rss_bytes: int
    """Of the process, or of the largest that it waited for."""
    out: str


def run(command: Iterable[object], variables: Mapping[str, str] | None = None) -> Ran:
    """Run a command to its end; it must succeed."""
    start = time.perf_counter()
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(
            [str(part) for part in command],
            env=dict(variables) if variables is not None else None,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.DEVNULL,
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            sys.exit(f"{process.args} ended with {process.returncode}")
        out.seek(0)
        return Ran(seconds, usage.ru_maxrss * 1024, out.read())


def alternate(times: int, *measured: Callable[[], float]) -> list[float]:
    """The median of each measurement, taken in turn so that drift meets all alike."""
    rounds = [[measure() for measure in measured] for _ in range(times)]
    return [statistics.median(column) for column in zip(*rounds, strict=True)]


def whole_command(model: Path, scratch: Path, times: int) -> Row:
    """The command a user types, to its end: profile and report, against memray's run."""
    etmem = (sys.executable, "-m", "etmem", "profile", model, "--output", scratch / "mlp.etmem")
    memray = (sys.executable, "-m", "memray", "run", "--native", "--force", "--output", scratch / "mlp.bin")
    ours, theirs = alternate(
        times,
        lambda: run(etmem).seconds,
        lambda: run((*memray, HERE / "run_model.py", model, WIDTH)).seconds,
    )
    return Row("whole command, 64 MiB mlp", f"{ours:.2f} s", f"memray {theirs:.2f} s", f"{ours / theirs:.3f}", "0.60 s")


def peak_rss(model: Path, scratch: Path, times: int) -> Row:
    """The runner with and without the agent, the rest equal."""
    found = executorch.find(None)
    job = prepare(ProfileOptions(program=model), scratch)
    text = scratch / "plan"
    text.write_bytes(os.fsencode(plan.encode(job.plan)))
    command = (build.runner(found), text)
    assert found.runtime is not None
    launch = Launch(
        command=tuple(map(str, command)),
        agent=build.agent(),
        trace=scratch / "rss.etmem",
        hooks=build.hooks(found.runtime),
        stacks=("XnnpackBackend",),
        keep_rusage=True,
    )
    recorded = environment(launch, os.environ)
    ours, bare = alternate(
        times,
        lambda: run(command, recorded).peak_rss_bytes / MIB,
        lambda: run(command, os.environ).peak_rss_bytes / MIB,
    )
    return Row(
        "peak RSS of the process", f"{ours:.1f} MiB", f"bare {bare:.1f} MiB", f"{ours - bare:+.1f} MiB", "+4.0 MiB"
    )


def malloc_cost(scratch: Path, times: int) -> Row:
    """Nanoseconds that recording adds to one malloc or free, into a file that survives a crash."""
    program = scratch / "malloc_loop"
    run(("cc", "-O2", HERE / "malloc_loop.c", "-o", program))
    launch = Launch(command=(str(program),), agent=build.agent(), trace=scratch / "loop.etmem")
    recorded = environment(launch, os.environ)
    ours, bare = alternate(
        times,
        lambda: float(run((program, PAIRS), recorded).out),
        lambda: float(run((program, PAIRS), os.environ).out),
    )
    added = (ours - bare) / 2
    return Row("added to a malloc or free", f"{added:.0f} ns", f"bare {bare / 2:.0f} ns", f"{ours / bare:.2f}", "40 ns")


def show(rows: list[Row]) -> None:
    cells = [("", "etmem", "beside", "ratio", "bar"), *((r.what, r.etmem, r.other, r.ratio, r.bar) for r in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def main() -> None:
    times = 3 if "--quick" in sys.argv[1:] else 5
    model = model_path("mlp")
    with tempfile.TemporaryDirectory(prefix="etmem-bench-") as folder:
        scratch = Path(folder)
        # Builds hooks and runner where that has not been done: once per ExecuTorch, not per command.
        run((sys.executable, "-m", "etmem", "profile", model, "--output", scratch / "warm.etmem"))
        show([whole_command(model, scratch, times), peak_rss(model, scratch, times), malloc_cost(scratch, times)])


if __name__ == "__main__":
    main()
