"""What one recorded event costs: nanoseconds, bytes in the file, and the time to read ten million of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measuring import HERE, MIB, NATIVE, Row, alternate, run
from etmem.capture import build
from etmem.capture.launch import Launch, environment

PAIRS = 2_000_000
SLOW = 20
"""massif takes that many times fewer pairs."""
READ_EVENTS = 10_000_000

READ = """
import resource, sys, time
from pathlib import Path
import etmem.analysis.summarize, etmem.report.text, etmem.trace.reader
from etmem.api import load
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.perf_counter()
load(Path(sys.argv[1])).text()
print(time.perf_counter() - start, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


def rows(scratch: Path, times: int) -> Iterator[Row]:
    program, library = scratch / "malloc_loop", scratch / "libloop.so"
    source = (HERE / "malloc_loop.c", f"-I{NATIVE / 'include'}", "-ldl")
    run(("cc", "-O2", "-g", *source, "-o", program))
    run(("cc", "-O2", "-g", "-shared", "-fPIC", *source, "-o", library))
    yield from _costs(scratch, times, program, library)
    yield from _reading(scratch, program)


def _costs(scratch: Path, times: int, program: Path, library: Path) -> Iterator[Row]:
    """Nanoseconds that recording adds to one malloc or free, into a file that survives a crash."""

    def loop(prefix: tuple[object, ...] = (), pairs: int = PAIRS, *, stacks: bool | None = None) -> float:
        command = (*prefix, program, pairs, *(("scope",) if stacks else ()))
        if stacks is None:
            return _nanoseconds(run(command).out)
        launch = Launch(
            command=tuple(map(str, command)), agent=build.agent(), trace=scratch / "loop.etmem", all_stacks=stacks
        )
        return _nanoseconds(run(command, environment(launch, os.environ)).out)

    memray = (sys.executable, "-m", "memray", "run", "--force", "--quiet", "--output", scratch / "loop.bin")
    script = (HERE / "memray_loop.py", library, PAIRS)

    def under_memray(*options: str) -> float:
        return _nanoseconds(run((*memray, *options, *script)).out)

    heaptrack = ("heaptrack", "--output", scratch / "loop.heaptrack")
    massif = ("valgrind", "--tool=massif", f"--massif-out-file={scratch}/massif")
    bare, ours, ours_stacks, plain, native = alternate(
        times,
        loop,
        lambda: loop(stacks=False),
        lambda: loop(stacks=True),
        under_memray,
        lambda: under_memray("--native"),
    )
    traced, valgrind = alternate(1, lambda: loop(heaptrack), lambda: loop(massif, PAIRS // SLOW))
    added = [(figure - bare) / 2 for figure in (ours, ours_stacks, plain, native, traced, valgrind)]
    yield Row("added to a malloc or free", f"{added[0]:.0f} ns", f"bare {bare / 2:.0f} ns", "", "40 ns")
    yield Row("", "", f"memray {added[2]:.0f} ns", f"{added[0] / added[2]:.2f}")
    yield Row("with stacks, ten deep", f"{added[1]:.0f} ns", f"memray --native {added[3]:.0f} ns",
              f"{added[1] / added[3]:.2f}", "400 ns, aim 250")  # fmt: skip
    yield Row("", "", f"heaptrack {added[4]:.0f} ns", f"{added[1] / added[4]:.2f}")
    yield Row("", "", f"massif {added[5]:.0f} ns", f"{added[1] / added[5]:.3f}")


def _nanoseconds(out: str) -> float:
    """The program's own line, among what a profiler prints."""
    return next(float(line) for line in out.splitlines() if line.replace(".", "", 1).isdigit())


def _reading(scratch: Path, program: Path) -> Iterator[Row]:
    trace = scratch / "ten.etmem"
    etmem = (sys.executable, "-m", "etmem", "run", "--output", trace, "--", program, READ_EVENTS // 2, "scope")
    run(etmem)
    events = READ_EVENTS
    yield Row("bytes per event, after close", f"{trace.stat().st_size / events:.2f} B", "", "", "4 B")
    seconds, peak = map(float, run((sys.executable, "-c", READ, trace)).out.split())
    yield Row("reading 10 million events", f"{seconds:.2f} s", f"{peak / MIB:.0f} MiB more RSS", "", "1.5 s, 300 MiB")
