"""Long traces: their short-lived blocks share rows, figures are those of every block, and memory stays small."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest

from etmem.analysis.accounting import every_block
from etmem.analysis.options import FOLD_FROM
from etmem.api import view
from etmem.capture import build
from etmem.capture.launch import Launch, environment
from etmem.report.tables import blocks as block_table
from etmem.report.view import View
from etmem.trace.pack import pack
from tests.agent.recording import PROGRAMS

LOOP = PROGRAMS.parents[2] / "benchmarks/malloc_loop.c"
INCLUDE = PROGRAMS.parents[1] / "include"
PAIRS = 600_000
LIVE = 1000

MOST = 300 << 20
"""Bytes that reading and drawing ten million events may take."""
READ = """
import re, sys
from pathlib import Path
import etmem.analysis.summarize, etmem.report.html, etmem.report.text, etmem.trace.reader
from etmem.api import load
def kib(name):
    return int(re.search(name + r":\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
before = kib("VmRSS")
profile = load(Path(sys.argv[1]), keep=True)
profile.text(full=True)
profile.html(sys.argv[2])
print(profile.summary.phases[0].allocations, (kib("VmHWM") - before) * 1024)
"""


def recorded(folder: Path, pairs: int) -> Path:
    """A trace of the loop, all of it in one inference."""
    program, trace = folder / "loop", folder / "loop.etmem"
    subprocess.run(["gcc", "-O2", LOOP, f"-I{INCLUDE}", "-o", program, "-ldl"], check=True)
    command = (str(program), str(pairs), "scope")
    launch = environment(Launch(command=command, agent=build.agent(), trace=trace), os.environ)
    subprocess.run(command, check=True, env=launch, stdout=subprocess.DEVNULL)
    pack(trace, trace)
    return trace


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> View:
    return view(recorded(tmp_path_factory.mktemp("long"), PAIRS))


def loop(pairs: int) -> list[int]:
    """What each pair of the loop leaves the live bytes changed by: its own arithmetic, done again."""
    random, live, changes = 12345, [0] * LIVE, []
    for _ in range(pairs):
        random = (random * 1664525 + 1013904223) & 0xFFFFFFFF
        slot, size = (random >> 8) % LIVE, 16 + (random >> 10 & 1023)
        changes += (-live[slot], size)
        live[slot] = size
    return changes


def test_figures_are_those_of_the_program(opened: View) -> None:
    """GIVEN 1.2 million events in one phase THEN its figures are those that its arithmetic gives."""
    assert len(opened.context.trace.events) > FOLD_FROM
    assert len(opened.context.blocks) < PAIRS // 20
    changes = loop(PAIRS)
    values = list(accumulate(changes))
    (phase,) = opened.summary.phases
    others = phase.live_end.private_bytes - values[-1]  # of the loader and of stdio
    assert 0 <= others < 4096
    assert phase.peak.private_bytes - max(values) == others
    assert 0 <= phase.allocations - PAIRS < 10
    assert 0 <= phase.allocated_bytes - sum(change for change in changes if change > 0) < 4096
    (rows,) = [owner for owner in phase.peak.owners if owner.owner == "executorch"]
    assert 0 <= rows.categories[0].blocks - LIVE < 10


def test_every_block_gives_the_same(opened: View) -> None:
    """GIVEN the same trace with a row for every block THEN all that is shown is the same."""
    from etmem.analysis.findings import findings
    from etmem.analysis.summarize import context, summary

    whole = context(every_block(opened.context))
    assert len(whole.blocks) > PAIRS
    seen = View(summary(whole, findings), whole, opened.trace_path)
    assert seen.summary == opened.summary
    assert seen.stacks == opened.stacks
    at = np.array(opened.samples.stamps, np.uint64)
    assert opened.samples.series == tuple(
        replace(series, values=tuple(values))
        for series, values in zip(opened.samples.series, _series(seen, at), strict=True)
    )


def _series(seen: View, at: np.ndarray[tuple[int], np.dtype[np.uint64]]) -> list[list[int]]:
    """What lives at each stamp by key, block by block."""
    ledger, found = seen.context.ledger, []
    for file in (False, True):
        sizes = ledger.file if file else ledger.private
        group = np.where(sizes > 0, ledger.code, np.int32(-1))
        live = ledger.sums_at(at, group, len(ledger.keys))
        found += [
            row.tolist() for row, key in zip(live, ledger.keys, strict=True) if row.any() and key.owner != "profiler"
        ]
    return found


def test_the_page_lists_what_lives_at_its_moments(opened: View) -> None:
    """GIVEN the page's blocks THEN at every moment that it can be asked about they are all that is live."""
    from etmem.report.live_blocks import live_blocks

    stamps = opened.samples.stamps
    listed = live_blocks(opened.context, stamps, most=10_000_000)
    begin, size = np.array(listed.begin), np.array(listed.bytes)
    end = np.where(np.array(listed.end) < 0, 2**62, listed.end)
    counted = np.array([key.counted for key in opened.context.keys])[list(listed.key)]
    values = np.sum([s.values for s in opened.samples.series if opened.context.keys[s.key].counted], axis=0)
    for stamp, value in list(zip(stamps, values.tolist(), strict=True))[::50]:
        assert size[(begin <= stamp) & (end > stamp) & counted].sum() == value


def test_tables_have_every_block(opened: View) -> None:
    rows = sum(len(batch["thread"]) for batch in block_table(opened).batches)
    assert rows >= PAIRS


def test_a_figure_without_its_blocks_is_refused(opened: View) -> None:
    """Nothing may be asked of folded blocks that they cannot answer."""
    (span,) = opened.context.spans
    with pytest.raises(ValueError, match="not made ready"):
        opened.context.moment((span.begin + span.end) // 2 + 3)


def test_ten_million_events_fit(tmp_path: Path) -> None:
    """GIVEN a trace of ten million events in one inference WHEN it is read, printed and drawn THEN in 300 MiB."""
    trace = recorded(tmp_path, 5_000_000)
    done = subprocess.run(
        [sys.executable, "-c", READ, trace, tmp_path / "page.html"], capture_output=True, text=True, check=True
    )
    allocations, grown = map(int, done.stdout.split())
    assert allocations >= 5_000_000
    assert grown < MOST
