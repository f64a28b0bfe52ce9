"""Runs one entry, here or on another machine: a function of plain data, and what it returns.

Every entry is an ``etmem profile`` of its own, so that one that is killed takes nothing with it.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from etmem.matrix.model import Entry, Outcome, Row, RowStatus
from etmem.matrix.parse import arguments

if TYPE_CHECKING:
    from etmem.model.summary import Peak, Summary

_MESSAGE = 300
_WRONG_FIGURE = 4


@dataclass(frozen=True)
class Job:
    entry: Entry
    timeout_seconds: float | None
    content: bytes | None = None
    """The program's bytes, where it runs on a machine that may not have the file."""


def run_job(job: Job) -> Outcome:
    """Never raises for what an entry does: a failure is a row."""
    with TemporaryDirectory(prefix="etmem-matrix-") as folder:
        return _run(job, Path(folder))


def _run(job: Job, folder: Path) -> Outcome:
    program, bundle, summary = job.entry.program.absolute(), folder / "run.zip", folder / "summary.json"
    if job.content is not None:
        program = folder / job.entry.program.name
        program.write_bytes(job.content)
    command = [
        *(sys.executable, "-m", "etmem", "profile", str(program), *arguments(job.entry.options)),
        *("--quiet", "--output", str(folder / "run.etmem"), "--bundle", str(bundle), "--json", str(summary)),
    ]
    begin = time.monotonic()
    status, message = _start(command, job.timeout_seconds)
    row = empty_row(job.entry, program.stat().st_size)
    row = replace(row, status=status, message=message, seconds=round(time.monotonic() - begin, 3))
    if summary.is_file():
        row = _filled(row, summary)
    return Outcome(row, bundle.read_bytes() if bundle.is_file() else None)


def _start(command: list[str], timeout: float | None) -> tuple[RowStatus, str]:
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=timeout,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return RowStatus.TIMEOUT, f"not done after {timeout:g} s"
    if done.returncode == 0:
        return RowStatus.OK, ""
    if done.returncode < 0:
        return RowStatus.KILLED, f"etmem was ended by signal {-done.returncode}"
    lines = [line for line in done.stderr.splitlines() if line.startswith("etmem: error: ")]
    return RowStatus.FAILED, lines[-1].removeprefix("etmem: error: ")[:_MESSAGE] if lines else f"exit {done.returncode}"


def empty_row(entry: Entry, file_bytes: int) -> Row:
    return Row(
        id=entry.id,
        program=entry.program.name,
        options=dict(entry.options),
        status=RowStatus.FAILED,
        message="not run",
        file_bytes=file_bytes,
        digest=entry.digest,
    )


def _filled(row: Row, path: Path) -> Row:
    from etmem.analysis.diff import rss_growth
    from etmem.model.words import PhaseKind, Severity
    from etmem.report.json import from_json

    summary = from_json(path.read_text(encoding="utf-8"))
    errors = [issue for issue in summary.issues if issue.severity is Severity.ERROR]
    status, message = row.status, row.message
    if errors:
        killed = any(issue.code.value == "process_killed" for issue in errors)
        status, message = RowStatus.KILLED if killed else RowStatus.FAILED, errors[0].message[:_MESSAGE]
    inferences = [phase for phase in summary.phases if phase.kind is PhaseKind.INFERENCE]
    growth = [rss_growth(summary, at) for at in ("load", "inference")]
    return replace(
        row,
        status=status,
        message=message,
        load_bytes=_total(summary.peaks.load),
        first_bytes=inferences[0].peak.private_bytes + inferences[0].peak.file_bytes if inferences else None,
        steady_bytes=_total(summary.peaks.steady),
        peak_bytes=_largest(_total(peak) for peak in (summary.peaks.load, summary.peaks.inference)),
        peak_private_bytes=_private_peak(summary),
        rss_growth_bytes=_largest(growth),
    )


def _total(peak: Peak | None) -> int | None:
    return peak.moment.private_bytes + peak.moment.file_bytes if peak is not None else None


def _private_peak(summary: Summary) -> int | None:
    return _largest(phase.peak_private.private_bytes for phase in summary.phases)


def _largest(counts: Iterable[int | None]) -> int | None:
    return max((count for count in counts if count is not None), default=None)
