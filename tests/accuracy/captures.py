"""Running etmem on the test models, and reading its summary as questions about owners."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from etmem.model.codec import from_data
from etmem.model.summary import Moment, Phase, Summary
from tests.models.registry import model_path

PROGRAMS = Path(__file__).parent / "programs"
RUN_MODEL = PROGRAMS / "run_model.py"
ETMEM = (sys.executable, "-m", "etmem")
XNNPACK = "delegate:XnnpackBackend"
MIB = 1024 * 1024


@dataclass(frozen=True)
class Ran:
    """A finished command."""

    code: int
    out: str
    err: str


def command(arguments: Iterable[object], cwd: Path | None = None, variables: Mapping[str, str] | None = None) -> Ran:
    """Run a command to its end, without a terminal."""
    done = subprocess.run(
        [str(argument) for argument in arguments],
        cwd=cwd,
        env={**os.environ, **(variables or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def etmem(*arguments: object, cwd: Path | None = None, variables: Mapping[str, str] | None = None) -> Ran:
    return command((*ETMEM, *arguments), cwd, variables)


def summarized(verb: str, arguments: Iterable[object], variables: Mapping[str, str] | None = None) -> Summary:
    """The summary of a capture that must succeed."""
    with tempfile.TemporaryDirectory() as folder:
        summary = Path(folder) / "summary.json"
        ran = etmem(
            *(verb, "--output", Path(folder) / "trace.etmem", "--json", summary, *arguments), variables=variables
        )
        assert ran.code == 0, f"exit {ran.code}\n{ran.out}\n{ran.err}"
        return from_data(Summary, json.loads(summary.read_text()))


@cache
def profile(name: str, *options: str) -> Summary:
    """``etmem profile`` of a test model; once per test process."""
    return summarized("profile", (model_path(name), *options))


@cache
def run_python(
    name: str, inputs: str, *, iterations: int = 2, packages: str = "", options: tuple[str, ...] = ()
) -> Summary:
    """``etmem run`` of a Python script that runs a test model with ``executorch.runtime``.

    ``inputs``: as JSON, method -> [[dtype, shape], ...]. ``packages``: a folder that comes first in sys.path.
    """
    script = (sys.executable, RUN_MODEL, model_path(name), inputs, str(iterations))
    variables = {"PYTHONPATH": packages} if packages else {}
    return summarized("run", (*options, "--", *script), variables)


def shape_options(inputs: Mapping[str, list[tuple[str, list[int]]]]) -> list[str]:
    """``--shape`` for every input of a case."""
    return [
        part
        for method, values in inputs.items()
        for index, (_, shape) in enumerate(values)
        for part in ("--shape", f"{method}:{index}={'x'.join(map(str, shape))}")
    ]


def blocks(summary: Summary, at: str, owner: str = XNNPACK) -> Counter[tuple[str, str | None, int]]:
    """How many blocks of each category, phase and size an owner holds at a peak."""
    count: Counter[tuple[str, str | None, int]] = Counter()
    for block in summary.largest_blocks:
        if block.at == at and block.owner == owner and not block.file:
            phase = str(block.phase) if block.phase else None
            count[str(block.category), phase, block.requested_bytes] += block.count
    return count


def category_bytes(moment: Moment, owner: str, category: str) -> int:
    """Private bytes of an owner's category, over all its instances."""
    return sum(
        part.private_bytes
        for held in moment.owners
        if held.owner == owner
        for part in held.categories
        if part.category == category
    )


def owner_bytes(moment: Moment, owner: str) -> int:
    return sum(held.private_bytes + held.file_bytes for held in moment.owners if held.owner == owner)


def phases(summary: Summary, *kinds: str) -> Iterator[Phase]:
    return (phase for phase in summary.phases if phase.kind in kinds)


def baseline_rss(summary: Summary) -> int:
    """RSS before the first program was loaded."""
    rss = summary.phases[0].rss
    assert rss is not None
    return rss.start_bytes


def peak_rss(summary: Summary, *kinds: str) -> int:
    """The kernel's high water over phases of these kinds."""
    return max(phase.rss.peak_bytes or 0 for phase in phases(summary, *kinds) if phase.rss)


def counts(summary: Summary) -> list[tuple[object, ...]]:
    """Everything that is counted for ExecuTorch and XNNPACK, phase by phase: no times, addresses or RSS."""
    return [
        (phase.kind, phase.method, phase.iteration, name, held.owner, held.instance, held.categories)
        for phase in summary.phases
        for name, moment in (("peak", phase.peak), ("start", phase.live_start), ("end", phase.live_end))
        for held in moment.owners
        if held.owner in ("executorch", XNNPACK)
    ]
