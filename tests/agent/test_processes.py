"""The life of a process under the agent: children, execs, threads, signals, sudden ends."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from etmem.trace.blocks import blocks
from etmem.trace.reader import open_mapped, read, walk
from etmem.trace.tables import NEVER, EventKind
from tests.agent.recording import PROGRAMS, allocations, compile_library, compile_program, record

if TYPE_CHECKING:
    from pathlib import Path

PROCESS = PROGRAMS / "process"
INCLUDE = PROGRAMS.parents[1] / "include"
OURS, CHILDS = 5001, 6001
THREADS = 4


def build_process(name: str, folder: Path) -> Path:
    return compile_program(PROCESS / f"{name}.c", folder, f"-I{PROCESS}", f"-I{INCLUDE}")


@pytest.mark.parametrize("how", ["fork_child", "underscore_fork_child", "raw_clone_child", "vfork_child"])
def test_a_child_never_writes_into_the_trace(how: str, tmp_path: Path) -> None:
    recording = record([build_process(how, tmp_path)], tmp_path)
    counts = allocations(recording.trace)
    assert recording.status == 0
    assert counts[OURS] == 200
    assert counts[CHILDS] == 0


def test_a_spawned_program_is_named_and_not_recorded(tmp_path: Path) -> None:
    program = build_process("spawn_child", tmp_path)
    recording = record([program], tmp_path)
    assert allocations(recording.trace)[OURS] == 200
    assert str(program) in recording.path.with_name("run.etmem.children").read_text()


def test_children_are_recorded_on_request(tmp_path: Path) -> None:
    recording = record([build_process("spawn_child", tmp_path)], tmp_path, children=True)
    assert allocations(recording.trace)[OURS] == 200
    others = [path for path in tmp_path.glob("run.etmem.*") if path.suffix[1:].isdigit()]
    assert len(others) == 1
    child = read(others[0])
    assert child.header.forked_child
    assert allocations(child)[OURS] == 100


def test_a_library_that_cannot_be_opened_costs_no_event(tmp_path: Path) -> None:
    """Its message is freed when anyone next asks the loader, which is the agent where the program does not."""
    code = "import _ctypes\ntry: _ctypes.dlopen('/no/such/library.so', 2)\nexcept OSError: pass"
    assert record([sys.executable, "-c", code], tmp_path).trace.header.dropped_events == 0


CHAINS = [["env"], ["taskset", "-c", "0"], ["env", "nice", "-n", "1"], ["sh", "-c", 'exec "$0"']]


@pytest.mark.parametrize("chain", CHAINS)
def test_an_exec_chain_leads_to_the_program(chain: list[str], tmp_path: Path) -> None:
    recording = record([*chain, build_process("threads", tmp_path)], tmp_path)
    assert recording.status == 0
    assert allocations(recording.trace)[1031] == 2000


@pytest.mark.parametrize(
    ("how", "status"), [("return", 0), ("exit", 0), ("_exit", 0), ("abort", -6), ("segv", -11), ("kill", -9)]
)
def test_every_record_before_the_end_is_readable(how: str, status: int, tmp_path: Path) -> None:
    recording = record([build_process("end", tmp_path), how], tmp_path)
    assert recording.status == status
    assert allocations(recording.trace)[OURS] == 1000
    assert recording.trace.header.closed == (how in ("return", "exit"))


@pytest.mark.parametrize("program", ["until_killed", "scopes_until_killed"])
def test_killed_anywhere(program: str, tmp_path: Path) -> None:
    """GIVEN threads that only record WHEN the process is killed THEN a thread lacks at most the record it was at."""
    built = build_process(program, tmp_path)
    for milliseconds in range(1, 40, 3):
        recording = record([built, str(milliseconds)], tmp_path)
        assert recording.status == -9
        given = [*recording.trace.events.stamp.tolist(), *walk(open_mapped(recording.path)).entries.stamps]
        last = max(given)
        assert len(given) == len(set(given))
        missing = set(range(1, last + 1)) - set(given)
        assert len(missing) <= THREADS + 1


def test_32_threads(tmp_path: Path) -> None:
    recording = record([build_process("threads", tmp_path)], tmp_path)
    counts = allocations(recording.trace)
    assert [counts[1000 + i] for i in range(32)] == [2000] * 32
    assert len(recording.trace.threads) == 33
    found, stats = blocks(recording.trace)
    of_threads = (found.bytes >= 1000) & (found.bytes < 1032)
    assert not (found.end[of_threads] == NEVER).any()
    assert stats.replaced_allocations == 0


def test_a_reused_address_is_never_taken_for_a_missed_free(tmp_path: Path) -> None:
    recording = record([build_process("realloc_race", tmp_path)], tmp_path)
    _, stats = blocks(recording.trace)
    assert stats.replaced_allocations == 0
    assert stats.unmatched_frees == 0


def test_a_signal_handler_that_allocates(tmp_path: Path) -> None:
    recording = record([build_process("signal_handler", tmp_path)], tmp_path)
    assert recording.status == 0
    seen = allocations(recording.trace)[7001]
    assert seen >= 200 - recording.trace.header.dropped_events
    assert seen > 0


def test_a_signal_handler_that_fills_the_chunk(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """GIVEN a signal between the taking of a slot and its record WHEN the handler needs room THEN no record is lost."""
    recording = record([build_process("signal_fills", tmp_path)], tmp_path)
    assert recording.status == 0
    _, stats = blocks(recording.trace)
    assert allocations(recording.trace)[OURS] == int(capfd.readouterr().out)
    assert stats.replaced_allocations == stats.unmatched_frees == 0


def test_call_stacks_while_another_thread_opens_libraries(tmp_path: Path) -> None:
    plugin = compile_library(PROGRAMS / "plugin/plugin.c", tmp_path / "libplugin.so")
    source = PROCESS / "stacks_and_dlopen.c"
    program = compile_program(source, tmp_path, f"-I{PROCESS}", f"-I{INCLUDE}", f'-DPLUGIN="{plugin}"', "-rdynamic")
    recording = record([program], tmp_path)
    assert recording.status == 0
    events = recording.trace.events
    ours = (events.kind == EventKind.ALLOC) & (events.size == OURS)
    assert ours.sum() == 4000
    assert (events.stack[ours] != 0).all()


def test_a_program_that_closes_every_descriptor(tmp_path: Path) -> None:
    own = tmp_path / "own.txt"
    recording = record([build_process("close_all", tmp_path), own], tmp_path)
    assert recording.status == 0
    assert own.stat().st_size == 0  # we never wrote into the program's file
    assert allocations(recording.trace)[OURS] == 100_000


def test_a_full_disk_stops_the_recording_and_not_the_program(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    script = f'mount -t tmpfs -o size=512k tmpfs "{disk}" && exec "$@"'
    enter = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
    program = build_process("close_all", tmp_path)
    copy = tmp_path / "copy.etmem"
    inner = (
        "import sys; from pathlib import Path; from tests.agent.recording import record; import shutil;"
        f"r = record([{str(program)!r}], Path({str(disk)!r})); shutil.copy(r.path, {str(copy)!r}); sys.exit(r.status)"
    )
    result = subprocess.run([*enter, "sh", "-c", script, "sh", sys.executable, "-c", inner], check=False)
    assert result.returncode == 0
    trace = read(copy)
    assert trace.header.disk_full
    assert trace.header.stopped
    assert 0 < allocations(trace)[OURS] < 100_000


def test_a_file_size_limit_is_a_full_disk(tmp_path: Path) -> None:
    program = build_process("close_all", tmp_path)
    recording = record(["sh", "-c", f"ulimit -f 512; exec {program}"], tmp_path)
    assert recording.status == 0
    assert recording.trace.header.disk_full
