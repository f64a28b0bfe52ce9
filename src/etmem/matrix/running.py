"""Runs the entries of a matrix that have no result yet, and keeps each result as soon as it is there."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, as_completed
from dataclasses import replace
from pathlib import Path

from etmem.matrix.model import Entry, Outcome, Row, RowStatus
from etmem.matrix.worker import Job, empty_row, run_job
from etmem.model.codec import CodecError, from_data, to_data
from etmem.model.errors import EtmemError, reason

Progress = Callable[[str], None]


def run_matrix(
    entries: Sequence[Entry],
    executor: Executor,
    results: Path,
    *,
    timeout_seconds: float | None = None,
    remote: bool = False,
    progress: Progress = lambda _: None,
) -> tuple[Row, ...]:
    """A row for every entry, in order. Entries with a good result in ``results`` are not run again; what failed is."""
    try:
        results.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EtmemError(f"cannot make {results}: {reason(error)}", "name another folder with --results") from error
    rows = {entry.id: row for entry in entries if (row := stored(entry, results)) is not None}
    left = [entry for entry in entries if entry.id not in rows]
    pace = _Pace(len(entries), len(rows), progress)
    futures: dict[Future[Outcome], Entry] = {}
    try:
        for entry in left:
            content = entry.program.read_bytes() if remote else None
            futures[executor.submit(run_job, Job(entry, timeout_seconds, content))] = entry
        for future in as_completed(futures):
            entry = futures[future]
            outcome = _outcome(future, entry)
            rows[entry.id] = outcome.row
            _keep(outcome, results)
            pace.step()
    finally:
        # After an interruption, what has not begun does not begin.
        for future in futures:
            future.cancel()
    return tuple(rows[entry.id] for entry in entries)


def stored(entry: Entry, results: Path) -> Row | None:
    """The good row that an earlier run left."""
    try:
        row = from_data(Row, json.loads((results / f"{entry.id}.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, CodecError):
        return None
    same = row.status is RowStatus.OK and row.digest == entry.digest
    return row if same and (results / f"{entry.id}.zip").is_file() else None


def _outcome(future: Future[Outcome], entry: Entry) -> Outcome:
    """A worker that died, or cannot run etmem at all, is its entry's failure and no one else's."""
    try:
        return future.result()
    except Exception as error:  # noqa: BLE001 -- whatever an executor makes of a lost worker
        row = empty_row(entry, entry.program.stat().st_size)
        died = type(error).__name__ in ("KilledWorker", "BrokenProcessPool", "CancelledError", "FutureCancelledError")
        status = RowStatus.KILLED if died else RowStatus.FAILED
        return Outcome(replace(row, status=status, message=f"{type(error).__name__}: {error}"[:300]))


def _keep(outcome: Outcome, results: Path) -> None:
    """The bundle first: a row says that it is there."""
    place = results / outcome.row.id
    if outcome.bundle is not None:
        _write(place.with_name(f"{place.name}.zip"), outcome.bundle)
    text = json.dumps(to_data(outcome.row), indent=2) + "\n"
    _write(place.with_name(f"{place.name}.json"), text.encode())


def _write(path: Path, data: bytes) -> None:
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        scratch.write_bytes(data)
        scratch.replace(path)
    except OSError as error:
        scratch.unlink(missing_ok=True)
        raise EtmemError(f"cannot write {path}: {reason(error)}", "name another folder with --results") from error


class _Pace:
    """How many are done, and how long the rest will take at the pace so far."""

    def __init__(self, total: int, done: int, progress: Progress) -> None:
        self._total, self._before, self._done = total, done, done
        self._progress = progress
        self._begin = time.monotonic()
        progress(f"{done} of {total} entries are there already" if done else f"0 of {total} entries")

    def step(self) -> None:
        self._done += 1
        each = (time.monotonic() - self._begin) / (self._done - self._before)
        left = each * (self._total - self._done)
        self._progress(f"{self._done} of {self._total} entries, {left:.0f} s left")
