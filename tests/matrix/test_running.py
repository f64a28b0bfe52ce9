"""Running and resuming, with jobs that are told what to do."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from etmem.matrix import worker
from etmem.matrix.model import Entry, Matrix, Outcome, RowStatus
from etmem.matrix.parse import entries
from etmem.matrix.running import run_matrix
from etmem.report.matrix import render, to_json, to_markdown, write_parquet


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """Entries of one program with threads 1 to 4, and what each job does; ``ran`` lists those that began."""

    class Lab:
        results = tmp_path / "results"
        ran: list[Entry] = []  # noqa: RUF012 -- one per test
        behaviour: dict[int, object] = {}  # noqa: RUF012

        def __init__(self):
            program = tmp_path / "m.pte"
            program.write_bytes(b"x" * 100)
            self.entries = entries([program], Matrix(tuple({"threads": n} for n in (1, 2, 3, 4))))
            self.steps = []

        def job(self, job):
            self.ran.append(job.entry)
            what = self.behaviour.get(job.entry.options["threads"])
            if isinstance(what, BaseException):
                raise what
            row = worker.empty_row(job.entry, 100)
            if isinstance(what, RowStatus):
                return Outcome(replace(row, status=what, message="why"))
            row = replace(row, status=RowStatus.OK, message="", load_bytes=200, peak_bytes=300, steady_bytes=250)
            return Outcome(row, b"bundle")

        def run(self):
            self.ran.clear()
            with ThreadPoolExecutor(1) as pool:
                return run_matrix(self.entries, pool, self.results, progress=self.steps.append)

    made = Lab()
    made.ran, made.behaviour = [], {}
    monkeypatch.setattr("etmem.matrix.running.run_job", made.job)
    return made


def test_rows_come_in_order_and_results_stay(lab):
    rows = lab.run()
    assert [row.options["threads"] for row in rows] == [1, 2, 3, 4]
    assert all(row.status is RowStatus.OK for row in rows)
    assert len(list(lab.results.glob("*.zip"))) == len(list(lab.results.glob("*.json"))) == 4
    assert lab.steps[0] == "0 of 4 entries"
    assert lab.steps[-1].startswith("4 of 4 entries, 0 s left")


def test_what_fails_is_a_row_and_not_the_end(lab):
    lab.behaviour.update({1: RowStatus.FAILED, 2: RuntimeError("boom"), 3: RowStatus.TIMEOUT})
    rows = lab.run()
    assert [row.status.value for row in rows] == ["failed", "failed", "timeout", "ok"]
    assert rows[1].message == "RuntimeError: boom"
    text = render(rows)
    assert "timeout: m.pte threads=3: why" in text
    assert max(map(len, text.splitlines())) <= 80


def test_the_same_matrix_goes_on_where_it_was(lab):
    lab.behaviour[3] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        lab.run()
    kept = {path.stem for path in lab.results.glob("*.json")}
    assert {entry.id for entry in lab.entries[:2]} <= kept
    lab.behaviour.clear()
    rows = lab.run()
    assert all(row.status is RowStatus.OK for row in rows)
    assert lab.entries[0].id not in {entry.id for entry in lab.ran}
    lab.run()
    assert lab.ran == []
    assert lab.steps[-1] == "4 of 4 entries are there already"


def test_failed_torn_and_half_kept_results_are_run_again(lab):
    lab.behaviour[1] = RowStatus.KILLED
    lab.run()
    lab.behaviour.clear()
    second, third = (lab.results / entry.id for entry in lab.entries[1:3])
    second.with_name(f"{second.name}.json").write_text("{")
    third.with_name(f"{third.name}.zip").unlink()
    lab.run()
    assert {entry.options["threads"] for entry in lab.ran} == {1, 2, 3}


def test_json_markdown_and_parquet(lab, tmp_path):
    rows = lab.run()
    data = json.loads(to_json(rows))
    assert data["schema"] == "etmem.matrix-rows/1"
    assert data["rows"][0]["ratio"] == 3.0
    assert to_markdown(rows).count("| ok |") == 4
    write_parquet(rows, tmp_path / "rows.parquet")
    from pyarrow import parquet

    table = parquet.read_table(tmp_path / "rows.parquet").to_pylist()
    assert [row["option.threads"] for row in table] == ["1", "2", "3", "4"]
    assert {row["peak_bytes"] for row in table} == {300}


@pytest.mark.parametrize(
    ("code", "status", "message"),
    [
        ("pass", RowStatus.OK, ""),
        ("import os; os.kill(os.getpid(), 9)", RowStatus.KILLED, "etmem was ended by signal 9"),
        ("import sys; sys.exit('etmem: error: no such thing')", RowStatus.FAILED, "no such thing"),
        ("import time; time.sleep(60)", RowStatus.TIMEOUT, "not done after 2 s"),
    ],
)
def test_how_a_process_ends(code, status, message):
    assert worker._start([sys.executable, "-c", code], 2) == (status, message)
