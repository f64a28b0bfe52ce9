"""Colour adds nothing but escape sequences, and only where a terminal asks for it."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from etmem.report.color import colored

GOLDENS = sorted(Path(__file__).with_name("goldens").glob("*.txt"))
SEQUENCE = re.compile(r"\x1b\[[\d;]*m")
PROGRAM = "from etmem.cli.console import write_report; write_report('PEAK of load  9.2 MiB  9.0 private\\n')"


@pytest.mark.parametrize("path", GOLDENS, ids=lambda path: path.stem)
def test_only_sequences_are_added(path):
    text = path.read_text()
    assert SEQUENCE.sub("", colored(text)) == text
    for line in colored(text).splitlines():
        assert line.count("\x1b[0m") * 2 == line.count("\x1b["), "every line ends as it began"


def test_peaks_bars_and_errors_stand_out():
    text = colored((Path(GOLDENS[0].parent) / "failed.txt").read_text())
    assert "\x1b[1m128.1 MiB\x1b[0m" in text
    assert "\x1b[34m##########\x1b[0m" in text
    assert "\x1b[1;31merror\x1b[0m program_failed" in text


def on_a_terminal(**variables: str) -> bytes:
    ours, theirs = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | {"TERM": "xterm"}
    subprocess.run([sys.executable, "-c", PROGRAM], stdout=theirs, env=environment | variables, check=True, timeout=60)
    os.close(theirs)
    shown = os.read(ours, 4096)
    os.close(ours)
    return shown


def test_colour_on_a_terminal_only():
    assert b"\x1b[1m9.2 MiB" in on_a_terminal()
    assert b"\x1b" not in on_a_terminal(NO_COLOR="1")
    assert b"\x1b" not in on_a_terminal(TERM="dumb")
    piped = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=True, timeout=60)
    assert piped.stdout == b"PEAK of load  9.2 MiB  9.0 private\n"
