"""The command line as a user meets it: a process, its output, its exit code."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from etmem.cli import main as main_module
from etmem.cli.main import VERBS

SRC = Path(__file__).parents[2] / "src"


def etmem(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "etmem", *arguments],
        capture_output=True, text=True, timeout=120, check=False, env={**os.environ, "PYTHONPATH": str(SRC)},
    )  # fmt: skip


def test_help_names_every_verb():
    done = etmem("--help")
    assert done.returncode == 0
    assert [verb for verb in VERBS if re.search(rf"^  {verb} ", done.stdout, re.MULTILINE)] == list(VERBS)
    assert etmem().stdout == done.stdout


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_s_help_has_an_example(verb):
    done = etmem(verb, "--help")
    assert done.returncode == 0
    assert "Example:  etmem " + verb in done.stdout
    assert "--json" in done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines())


def test_version():
    from etmem import __version__

    assert etmem("--version").stdout == f"etmem {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nonsense"], "No such command 'nonsense'"),
        (["profile"], "Missing argument 'MODEL.pte'"),
        (["profile", "x.pte", "--load-mode", "magic"], "'magic' is not one of"),
        (["profile", "x.pte", "--shape", "0=axb"], "not a shape: '0=axb'"),
        (["profile", "x.pte", "--backend-option", "nope"], "not a backend option: 'nope'"),
        (["profile", "x.pte", "--iterations", "0"], "0 is not in the range"),
        (["profile", "x.pte", "--architecture", "aarch64"], "No such option"),
        (["run"], "Missing argument"),
        (["explain", "packd", "weights"], "no such word"),
    ],
)
def test_wrong_usage_is_one_line_a_hint_and_exit_code_two(arguments, message):
    done = etmem(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    first, second = done.stderr.splitlines()
    assert first.startswith("etmem: error: ")
    assert message in first
    assert second.startswith("hint: ")


@pytest.mark.parametrize("content", [None, b"", b"not a trace\n" * 1000])
def test_what_is_no_trace_is_one_line_and_a_hint(tmp_path, content):
    path = tmp_path / "x.etmem"
    if content is not None:
        path.write_bytes(content)
    done = etmem("report", str(path))
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("etmem: error: ")
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 2


def test_explain_prints_and_writes_json(tmp_path):
    assert etmem("explain", "double_weights").stdout.startswith("double_weights  (finding)\n")
    done = etmem("explain", "packed", "weights", "--json", "-")
    assert json.loads(done.stdout)["word"] == "packed_weights"
    target = tmp_path / "words.json"
    assert etmem("explain", "--json", str(target)).stdout.startswith("owner ")
    assert len(json.loads(target.read_text())) > 60


def test_an_unwritable_json_file_is_an_error_with_a_hint(tmp_path):
    done = etmem("explain", "rss", "--json", str(tmp_path / "no" / "file.json"))
    assert done.returncode == 1
    assert "cannot write" in done.stderr
    assert "hint: " in done.stderr


def test_a_reader_that_goes_away_leaves_no_traceback():
    process = subprocess.Popen(
        [sys.executable, "-m", "etmem", "explain", "--json", "-"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(SRC)},
    )  # fmt: skip
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(timeout=60) == 1


def crashing(monkeypatch, error):
    def main(**_options):
        raise error

    monkeypatch.setattr(main_module.cli, "main", main)


def test_an_unexpected_error_goes_to_a_file_and_one_line(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.delenv("ETMEM_DEBUG", raising=False)
    crashing(monkeypatch, ZeroDivisionError("boom\nboom"))
    assert main_module.run([]) == 1
    first, second = capsys.readouterr().err.splitlines()
    assert first == "etmem: error: internal error, ZeroDivisionError: boom boom"
    log = next(tmp_path.glob("etmem-crash-*.log"))
    assert str(log) in second
    assert "Traceback" in log.read_text()


def test_debugging_shows_the_traceback(monkeypatch):
    monkeypatch.setenv("ETMEM_DEBUG", "1")
    crashing(monkeypatch, ZeroDivisionError("boom"))
    with pytest.raises(ZeroDivisionError):
        main_module.run([])


def test_an_interrupt_is_one_line(monkeypatch, capsys):
    crashing(monkeypatch, KeyboardInterrupt())
    assert main_module.run([]) == 128 + signal.SIGINT
    assert capsys.readouterr().err == "etmem: interrupted\n"


def imported_by(statement):
    code = f"import sys; {statement}; print(' '.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(SRC)},
    )  # fmt: skip
    return set(done.stdout.splitlines()[-1].split())


def test_importing_etmem_imports_nothing_heavy():
    heavy = {"numpy", "torch", "executorch", "pandas", "rich", "click", "elftools", "flatbuffers"}
    assert not imported_by("import etmem") & heavy


def test_help_imports_nothing_heavy():
    loaded = imported_by("from etmem.cli.main import run; run(['--help'])")
    assert not loaded & {"numpy", "torch", "executorch", "pandas", "rich", "elftools", "flatbuffers", "etmem.api"}
