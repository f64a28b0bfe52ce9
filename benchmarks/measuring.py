"""Running commands, taking turns, and the table's rows."""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
NATIVE = HERE.parent / "native"
MIB = 1024 * 1024
WIDTH = "2048"
"""Of the mlp's input."""


@dataclass(frozen=True)
class Row:
    """One line of the table; ``bar`` is the most that etmem's figure may be."""

    what: str
    etmem: str
    beside: str = ""
    ratio: str = ""
    bar: str = ""


@dataclass(frozen=True)
class Ran:
    seconds: float
    cpu_seconds: float
    """Of the process and of those that it waited for."""
    out: str


def run(command: Iterable[object], variables: Mapping[str, str] | None = None) -> Ran:
    """Run a command to its end; it must succeed."""
    start = time.perf_counter()
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [str(part) for part in command],
            env=dict(variables) if variables is not None else None,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=errors,
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            errors.seek(0)
            sys.exit(f"{process.args} ended with {process.returncode}\n{errors.read()[-2000:]}")
        out.seek(0)
        return Ran(seconds, usage.ru_utime + usage.ru_stime, out.read())


_SMALL_PARENT = """
import os, sys
quiet = [(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)]
process = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=quiet)
_, status, usage = os.wait4(process, 0)
print(status, usage.ru_maxrss)
"""


def peak_rss(command: Sequence[object], variables: Mapping[str, str] | None = None) -> int:
    """The kernel's highest RSS of a command, started from a process that is small itself: what a process had before it
    execs counts as its own, and a Python with NumPy in it has more than most commands here."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _SMALL_PARENT, *map(str, command)],
        env=dict(variables) if variables is not None else None,
        capture_output=True,
        text=True,
        check=True,
    )
    status, kilobytes = map(int, done.stdout.split())
    if status:
        sys.exit(f"{command[0]} ended with {os.waitstatus_to_exitcode(status)}")
    return kilobytes * 1024


def alternate(times: int, *measured: Callable[[], float]) -> list[float]:
    """The median of each measurement, taken in turn so that drift meets all alike."""
    rounds = [[measure() for measure in measured] for _ in range(times)]
    return [statistics.median(column) for column in zip(*rounds, strict=True)]


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Median, and the middle 95 % of medians of samples drawn from the values."""
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(1000))
    return statistics.median(values), medians[25], medians[974]


def told(rows: Iterable[Row]) -> Iterator[Row]:
    """The rows as they come, each said on standard error: the table itself comes at the end."""
    start = time.monotonic()
    for row in rows:
        print(f"{time.monotonic() - start:6.0f} s  {row.what or row.beside}", file=sys.stderr, flush=True)
        yield row


def show(rows: Sequence[Row]) -> None:
    cells = [("", "etmem", "beside", "ratio", "bar"), *((r.what, r.etmem, r.beside, r.ratio, r.bar) for r in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
