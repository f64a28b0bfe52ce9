"""Instructions of the client's side, counted by callgrind: the times are in ``benchmarks/clients.py``."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks.clients import compile_loop
from etmem.capture import build
from etmem.capture.launch import Launch, environment
from tests.agent.callgrind import counted

CALLS = 20_000
ALLOWED = 1.10
ABSENT = 6.2
"""Instructions that a call adds where there is no profiler, when this was last looked at. Lower it with the code."""
WRAPPED = 93.0
"""What a wrapped allocator adds to one allocation that is recorded."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_loop(tmp_path_factory.mktemp("loop") / "loop")


def instructions(program: Path, folder: Path, mode: str, function: str, *, recorded: bool = False) -> int:
    command = (str(program), mode, str(CALLS))
    variables = dict(os.environ)
    if recorded:
        launch = Launch(command=command, agent=build.agent(), trace=folder / "trace")
        variables = environment(launch, os.environ)
    return counted(command, folder, function, variables)


def test_a_call_where_there_is_no_profiler(program: Path, tmp_path: Path) -> None:
    calls = instructions(program, tmp_path, "calls", "run_calls")
    empty = instructions(program, tmp_path, "empty", "run_empty")
    assert 0 < (calls - empty) / CALLS <= ABSENT * ALLOWED


def test_a_wrapped_allocator_that_is_recorded(program: Path, tmp_path: Path) -> None:
    wrapped = instructions(program, tmp_path, "wrapped", "run_allocator", recorded=True)
    bare = instructions(program, tmp_path, "bare", "run_allocator")
    assert 0 < (wrapped - bare) / CALLS <= WRAPPED * ALLOWED
