"""``etmem report`` with every export at once, to files, folders and stdout."""

from __future__ import annotations

import json

import pytest

from etmem.cli.main import run
from etmem.report.exports import EXPORTS
from etmem.trace import reader
from tests.report.views import small


@pytest.fixture
def trace(tmp_path):
    return small().write(tmp_path / "small.etmem")


def test_every_export_in_one_command(trace, tmp_path, capsys):
    wanted = [(f"--{export.name}", str(tmp_path / export.name)) for export in EXPORTS]
    assert run(["report", str(trace), *(part for pair in wanted for part in pair)]) == 0
    assert "PEAK of load" in capsys.readouterr().out
    for export in EXPORTS:
        place = tmp_path / export.name
        assert place.is_dir() == export.folder
        assert place.is_file() or {path.stem for path in place.iterdir()} == {"blocks", "events", "phases", "operators"}
    assert (tmp_path / "html").read_bytes().startswith(b"<!doctype html>")


def test_a_trace_is_read_once_whatever_is_made_of_it(trace, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr(reader, "read", lambda path, read=reader.read: opened.append(path) or read(path))
    assert (
        run(["report", str(trace), "-q", "--html", str(tmp_path / "a.html"), "--pprof", str(tmp_path / "a.pb.gz")]) == 0
    )
    assert opened == [trace]


def test_a_file_on_stdout_stands_alone(trace, capsysbinary):
    assert run(["report", str(trace), "--speedscope", "-"]) == 0
    assert json.loads(capsysbinary.readouterr().out)["exporter"] == "etmem"


def test_a_folder_that_is_missing_is_said(trace, tmp_path, capsys):
    assert run(["report", str(trace), "--html", str(tmp_path / "missing" / "report.html")]) == 1
    assert "cannot write" in capsys.readouterr().err
