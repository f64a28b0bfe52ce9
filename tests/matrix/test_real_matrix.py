"""Real matrices: local processes, and a Dask cluster of which one worker is killed in the middle."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from etmem.cli.main import run

MATRIX = 'schema = "etmem.matrix/1"\n[axes]\nload_mode = ["mmap", "file"]\n'


def test_a_table_of_programs_and_options(model, tmp_path, capsys):
    (tmp_path / "m.toml").write_text(MATRIX)
    programs = [str(model("convs")), str(model("unknown_backend"))]
    command = ["profile", *programs, "--matrix", str(tmp_path / "m.toml"), "--results", str(tmp_path / "r"), "--bytes"]
    assert run([*command, "--json", str(tmp_path / "rows.json")]) == 1
    rows = json.loads((tmp_path / "rows.json").read_text())["rows"]
    assert [(row["program"], row["options"]["load_mode"], row["status"]) for row in rows] == [
        ("convs.pte", "mmap", "ok"),
        ("convs.pte", "file", "ok"),
        ("unknown_backend.pte", "mmap", "failed"),
        ("unknown_backend.pte", "file", "failed"),
    ]
    assert rows[0]["peak_bytes"] == max(rows[0]["load_bytes"], rows[0]["first_bytes"])
    assert rows[0]["ratio"] > 200
    assert "NoSuchBackend" in rows[2]["message"]
    assert rows[0]["id"] != rows[1]["id"]
    out = capsys.readouterr().out
    assert "options 2: load_mode=file" in out
    for row in rows[:2]:
        assert run(["verify", str(tmp_path / "r" / f"{row['id']}.zip")]) == 0
    left, right = (str(tmp_path / "r" / f"{row['id']}.zip") for row in rows[:2])
    assert run(["diff", left, right]) == 0
    assert "not alike: loader" in capsys.readouterr().out


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(stack: ExitStack, *arguments: object) -> subprocess.Popen[bytes]:
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([sys.executable, "-m", *map(str, arguments)], **quiet)
    stack.callback(process.wait)
    stack.callback(process.kill)
    return process


def wait_for(condition, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.05)


def test_a_dask_worker_that_is_killed_loses_nothing(model, tmp_path):
    (tmp_path / "m.toml").write_text(MATRIX.replace('"file"]', '"file", "buffer", "mlock"]'))
    port, results = free_port(), tmp_path / "results"
    with ExitStack() as stack:
        start(stack, "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard")
        options = ("--nthreads", 1, "--no-nanny", "--no-dashboard", "--local-directory", tmp_path)
        workers = [start(stack, "distributed.cli.dask_worker", f"tcp://127.0.0.1:{port}", *options) for _ in range(2)]
        matrix = start(
            stack,
            *("etmem", "matrix", model("convs"), "-m", tmp_path / "m.toml", "--results", results, "--quiet"),
            *("--executor", f"dask://127.0.0.1:{port}", "--json", tmp_path / "rows.json"),
        )
        wait_for(lambda: list(results.glob("*.json")))
        assert len(list(results.glob("*.json"))) < 4
        assert matrix.poll() is None
        os.kill(workers[0].pid, signal.SIGKILL)
        assert matrix.wait(timeout=180) == 0
        assert workers[0].wait() == -signal.SIGKILL
    rows = json.loads((tmp_path / "rows.json").read_text())["rows"]
    assert [row["status"] for row in rows] == ["ok"] * 4
    assert len({Path(path).stem for path in results.glob("*.zip")}) == 4


def test_a_cluster_that_is_not_there_is_told(model, tmp_path, capsys, monkeypatch):
    address = f"dask://127.0.0.1:{free_port()}"
    assert run(["matrix", str(model("convs")), "--executor", address, "--results", str(tmp_path / "r")]) == 1
    assert "no Dask scheduler answers" in capsys.readouterr().err
