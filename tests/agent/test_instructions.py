"""Instructions of the hook path, counted by callgrind: where times would be noise, these are the same every time."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from etmem.capture import build
from etmem.capture.launch import Launch, environment
from tests.agent.callgrind import counted
from tests.agent.recording import PROGRAMS, compile_program

LOOP = PROGRAMS.parents[2] / "benchmarks/malloc_loop.c"
INCLUDE = PROGRAMS.parents[1] / "include"
PAIRS = 20_000
ALLOWED = 1.10

ADDED = 57.3
"""Instructions that recording one malloc or one free adds, when this was last looked at. Lower it with the code."""

STACK = 1560.0
"""Instructions that a call stack, ten calls deep, adds to a malloc."""

SCOPE = 446.0
"""Instructions of a scope's beginning and end, two readings of the clock among them."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("loop") / "loop"
    subprocess.run(["gcc", "-O2", LOOP, f"-I{INCLUDE}", "-o", output, "-ldl"], check=True)
    return output


def instructions(program: Path, folder: Path, *, recorded: bool, stacks: bool = False) -> int:
    """Those of the loop alone: not of starting a process."""
    command = (str(program), str(PAIRS), *(("scope",) if recorded else ()))
    if not recorded:
        return counted(command, folder, "run_pairs", dict(os.environ))
    launch = Launch(command=command, agent=build.agent(), trace=folder / "trace", all_stacks=stacks)
    return counted(command, folder, "run_pairs", environment(launch, os.environ))


def test_a_recorded_call(program: Path, tmp_path: Path) -> None:
    """GIVEN one loop with and without the agent THEN the difference is the hook path."""
    recorded, bare = (instructions(program, tmp_path, recorded=recorded) for recorded in (True, False))
    assert bare > 100 * PAIRS
    assert 0 < (recorded - bare) / (2 * PAIRS) <= ADDED * ALLOWED


def test_a_recorded_stack(program: Path, tmp_path: Path) -> None:
    """GIVEN one loop recorded with and without stacks THEN the difference is that of the walk, for every malloc."""
    with_stacks, without = (instructions(program, tmp_path, recorded=True, stacks=stacks) for stacks in (True, False))
    assert 0 < (with_stacks - without) / PAIRS <= STACK * ALLOWED


def test_a_scope_of_an_instruction(tmp_path: Path) -> None:
    program = compile_program(PROGRAMS / "scopes/loop.c", tmp_path, f"-I{INCLUDE}")
    command = (str(program), str(PAIRS))
    launch = Launch(command=command, agent=build.agent(), trace=tmp_path / "trace")
    found = counted(command, tmp_path, "run_scopes", environment(launch, os.environ)) / PAIRS
    assert 100 < found <= SCOPE * ALLOWED
