"""What one recorded event costs: nanoseconds, bytes in the file, and the time to read ten million of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.measuring import HERE, MIB, NATIVE, WIDTH, Row, alternate, run
from benchmarks.peers import PEERS, Peer
from etmem.capture import build
from etmem.capture.launch import Launch, environment
from etmem.trace.pack import pack
from etmem.trace.reader import read
from tests.models.registry import model_path

PAIRS = 2_000_000
READ_EVENTS = 10_000_000

READ = """
import re, sys, time
from pathlib import Path
import etmem.analysis.summarize, etmem.report.text, etmem.trace.reader
from etmem.api import load
def field(name):  # ru_maxrss would be at least that of the process that started this one
    return int(re.search(name + r":\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) * 1024
before = field("VmRSS")
start = time.perf_counter()
load(Path(sys.argv[1])).text()
print(time.perf_counter() - start, time.process_time(), field("VmHWM") - before)
"""


def rows(scratch: Path, times: int) -> Iterator[Row]:
    program, library = scratch / "malloc_loop", scratch / "libloop.so"
    source = (HERE / "malloc_loop.c", f"-I{NATIVE / 'include'}", "-ldl")
    run(("cc", "-O2", "-g", *source, "-o", program))
    run(("cc", "-O2", "-g", "-shared", "-fPIC", *source, "-o", library))
    yield from _Costs(scratch, program, library).rows(times)
    yield from _reading(scratch, program)
    yield from _python(scratch)


@dataclass(frozen=True)
class _Costs:
    """Nanoseconds of CPU time that recording adds to one malloc or free, into a file that survives a crash."""

    scratch: Path
    program: Path
    library: Path

    def rows(self, times: int) -> Iterator[Row]:
        peers = [peer for peer in PEERS if peer.installed]
        ours = (self._bare, lambda: self._recorded(stacks=False), lambda: self._recorded(stacks=True))
        bare, plain, stacks, *theirs = alternate(times, *ours, *(partial(self._under, peer) for peer in peers))
        added, added_stacks = (plain - bare) / 2, (stacks - bare) / 2
        of_peer = {peer: (figure - bare) / 2 for peer, figure in zip(peers, theirs, strict=True)}
        yield Row("added to a malloc or free", f"{added:.0f} ns", f"bare {bare / 2:.0f} ns", "", "40 ns")
        yield from (self._beside(peer, added, of_peer) for peer in PEERS if not peer.stacks)
        yield Row("with stacks, ten deep", f"{added_stacks:.0f} ns", "", "", "400 ns, aim 250")
        yield from (self._beside(peer, added_stacks, of_peer) for peer in PEERS if peer.stacks)
        memory = read(self.scratch / "loop.etmem").header.agent_bytes / MIB
        yield Row("the agent's own memory, with stacks", f"{memory:.2f} MiB", "", "", "4 MiB")

    def _beside(self, peer: Peer, ours: float, of_peer: Mapping[Peer, float]) -> Row:
        if peer not in of_peer:
            return peer.absent()
        return Row("", "", f"{peer.name} {of_peer[peer]:.0f} ns", f"{ours / of_peer[peer]:.3f}")

    def _bare(self) -> float:
        return _nanoseconds(run((self.program, PAIRS)).out)

    def _recorded(self, *, stacks: bool) -> float:
        command = (str(self.program), str(PAIRS), *(("scope",) if stacks else ()))
        launch = Launch(command=command, agent=build.agent(), trace=self.scratch / "loop.etmem", all_stacks=stacks)
        return _nanoseconds(run(command, environment(launch, os.environ)).out)

    def _under(self, peer: Peer) -> float:
        pairs = PAIRS // peer.slower
        if peer.name.startswith("memray"):
            return _nanoseconds(run(peer.python(self.scratch, HERE / "memray_loop.py", self.library, pairs)).out)
        return _nanoseconds(run(peer.command(self.scratch, self.program, pairs)).out)


def _nanoseconds(out: str) -> float:
    """The program's own line, among what a profiler prints."""
    return next(float(line) for line in out.splitlines() if line.replace(".", "", 1).isdigit())


def _reading(scratch: Path, program: Path) -> Iterator[Row]:
    """All of them inside one inference: none can be left out of the analysis."""
    raw, trace = scratch / "ten.raw", scratch / "ten.etmem"
    command = (str(program), str(READ_EVENTS // 2), "scope")
    run(command, environment(Launch(command=command, agent=build.agent(), trace=raw), os.environ))
    pack(raw, trace)
    before, after = (path.stat().st_size / READ_EVENTS for path in (raw, trace))
    yield Row("bytes per event, while recording", f"{before:.2f} B")
    yield Row("after close", f"{after:.2f} B", "", "", "4 B")
    raw.unlink()
    seconds, cpu_seconds, peak = map(float, run((sys.executable, "-c", READ, trace)).out.split())
    yield Row("reading 10 million events", f"{seconds:.2f} s", f"CPU time {cpu_seconds:.2f} s", "", "1.5 s")
    yield Row("", f"{peak / MIB:.0f} MiB more RSS", "", "", "300 MiB")


def _python(scratch: Path) -> Iterator[Row]:
    """Most of what an interpreter allocates comes before the first phase."""
    trace, script = scratch / "python.etmem", (sys.executable, HERE / "run_model.py", model_path("mlp"), WIDTH)
    run((sys.executable, "-m", "etmem", "run", "--quiet", "--output", trace, "--", *script))
    events, report = len(read(trace).events), run((sys.executable, "-m", "etmem", "report", "--quiet", trace))
    beside = f"CPU time {report.cpu_seconds:.2f} s"
    yield Row(f"report of {events / 1e6:.2f} million events in Python", f"{report.seconds:.2f} s", beside, "", "3 s")
