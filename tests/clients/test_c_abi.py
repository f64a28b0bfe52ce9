"""The C ABI in programs of every kind, and in libraries that come before and after the agent."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import etmem
from etmem.model.words import Category, IssueCode, MemoryKind
from etmem.trace import tables
from etmem.trace.reader import read
from etmem.trace.tables import CounterUnit, EventKind, MisuseKind, ScopeKind
from tests.agent.recording import Recording, record
from tests.clients.compilers import CLANG, GCC, PROGRAMS, compile_client

EXAMPLES = Path(__file__).resolve().parents[2] / "examples/c_abi"
DYNAMIC = {"pie": ("-fPIE", "-pie"), "non-pie": ("-fno-pie", "-no-pie")}
STATIC = {"static": ("-static",), "static-pie": ("-static-pie", "-fPIE")}


def output_of(program: Path) -> str:
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout


def heap_events(recording: Recording) -> list[tuple[str, EventKind, int]]:
    events, heaps = recording.trace.events, recording.trace.heaps
    chosen = events.kind >= EventKind.HEAP_ALLOC
    columns = (events.stack[chosen].tolist(), events.kind[chosen].tolist(), events.size[chosen].tolist())
    return [(heaps[heap].name, EventKind(kind), size) for heap, kind, size in zip(*columns, strict=True)]


@pytest.mark.parametrize("cxx", [False, True], ids=["c", "c++"])
@pytest.mark.parametrize("compilers", [GCC, CLANG], ids=["gcc", "clang"])
@pytest.mark.parametrize("kind", DYNAMIC)
def test_a_program_that_is_recorded(kind: str, compilers: tuple[str, str], cxx: bool, tmp_path: Path) -> None:
    flags = DYNAMIC[kind]
    program = compile_client(PROGRAMS / "client.c", tmp_path / "client", *flags, compilers=compilers, cxx=cxx)
    assert output_of(program) == "0\n"
    recording = record([program], tmp_path)
    trace = recording.trace
    (tag,) = (scope for scope in trace.scopes.values() if scope.kind is ScopeKind.TAG)
    assert (recording.status, tag.name, tag.category) == (0, "work", "workspace")
    assert heap_events(recording) == [
        ("pool", EventKind.HEAP_ALLOC, 4096),
        ("frames", EventKind.HEAP_ALLOC, 1 << 20),
        ("frames", EventKind.HEAP_FREE, 0),
        ("pool", EventKind.HEAP_RESET, 0),
    ]
    assert [heap.memory for heap in trace.heaps.values()] == [tables.MemoryKind.HOST, tables.MemoryKind.GPU]
    assert [(c.name, c.unit, c.value, c.scope) for c in trace.counters] == [("depth", CounterUnit.NUMBER, -3, tag.id)]
    assert [(label.name, label.bytes) for label in trace.labels] == [("table", 100)]
    assert [(claim.owner, claim.name) for claim in trace.claims] == [("host", "input")]
    assert trace.misuses == ()


@pytest.mark.parametrize("compilers", [GCC, CLANG], ids=["gcc", "clang"])
@pytest.mark.parametrize("source", ["client", "static_with_dlsym"])
@pytest.mark.parametrize("kind", STATIC)
def test_a_static_program_runs_without_a_profiler(
    kind: str, source: str, compilers: tuple[str, str], tmp_path: Path
) -> None:
    flags = (*STATIC[kind], "-Wl,--fatal-warnings")
    program = compile_client(PROGRAMS / f"{source}.c", tmp_path / source, *flags, compilers=compilers)
    assert output_of(program) == "0\n"


@pytest.mark.parametrize("compilers", [GCC, CLANG], ids=["gcc", "clang"])
def test_a_program_without_any_dlsym(compilers: tuple[str, str], tmp_path: Path) -> None:
    flags = ("-static", "-nostdlib", "-ffreestanding", "-fno-stack-protector")
    program = compile_client(PROGRAMS / "freestanding.c", tmp_path / "free", *flags, compilers=compilers, libraries=())
    assert "dlsym" not in subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    assert output_of(program) == ""


@pytest.mark.parametrize("macro", ["ETMEM_NO_DLSYM", "ETMEM_DISABLE"])
def test_opting_out(macro: str, tmp_path: Path) -> None:
    program = compile_client(PROGRAMS / "client.c", tmp_path / "client", f"-D{macro}")
    symbols = subprocess.run(["nm", "-u", program], capture_output=True, text=True, check=True).stdout
    assert "dlsym" not in symbols
    found = len(record([program], tmp_path).trace.counters)
    assert found == (1 if macro == "ETMEM_NO_DLSYM" else 0)  # the agent finds a client that cannot look itself


def test_a_library_that_is_opened_while_recording(tmp_path: Path) -> None:
    library = compile_client(PROGRAMS / "library.c", tmp_path / "lib.so", "-shared", "-fPIC", '-DNAME="later"')
    flags = (f'-DLIBRARY="{library}"',)
    recording = record([compile_client(PROGRAMS / "opens_library.c", tmp_path / "opens", *flags)], tmp_path)
    assert recording.status == 0
    assert [name for name, _, _ in heap_events(recording)] == ["later", "later"]


ATTACHED = """
import ctypes, sys
import etmem
before, after, looked = (ctypes.CDLL(path) for path in (sys.argv[1], sys.argv[2], sys.argv[3]))
assert looked.work() == 0 and looked.looked() == 1 and before.looked() == 0
with etmem.trace("one.etmem"):
    assert before.work() == 1 and looked.work() == 1
    assert ctypes.CDLL(sys.argv[4]).work() == 1
assert looked.work() == 0
with etmem.trace("two.etmem"):
    assert looked.work() == 1
"""


def test_libraries_before_and_after_a_recording_that_is_attached(tmp_path: Path) -> None:
    """Also one that looked, and found nothing, before there was an agent: it is told."""
    libraries = [
        compile_client(PROGRAMS / "library.c", tmp_path / f"lib{name}.so", "-shared", "-fPIC", f'-DNAME="{name}"')
        for name in ("before", "unused", "looked", "opened")
    ]
    subprocess.run([sys.executable, "-c", ATTACHED, *libraries], cwd=tmp_path, check=True)
    one, two = read(tmp_path / "one.etmem"), read(tmp_path / "two.etmem")
    assert {scope.name for scope in one.scopes.values()} >= {"before", "looked", "opened"}
    assert {heap.name for heap in one.heaps.values()} == {"before", "looked", "opened"}
    assert [scope.name for scope in two.scopes.values() if scope.kind is ScopeKind.TAG] == ["looked"]
    assert {heap.name for heap in two.heaps.values()} == {"before", "looked", "opened"}
    assert one.misuses == two.misuses == ()


def test_a_client_that_was_compiled_for_the_first_table_still_works(tmp_path: Path) -> None:
    recording = record([compile_client(PROGRAMS / "older_client.c", tmp_path / "older")], tmp_path)
    assert recording.status == 0
    assert recording.trace.note("old.note") == "kept"
    assert heap_events(recording) == [("old pool", EventKind.HEAP_ALLOC, 256), ("old pool", EventKind.HEAP_FREE, 0)]
    assert {(s.name, s.category) for s in recording.trace.scopes.values()} >= {("old work", "workspace")}
    assert [claim.owner for claim in recording.trace.claims] == ["host"]


def test_an_agent_with_the_first_table_still_serves_todays_client(tmp_path: Path) -> None:
    recording = record([compile_client(PROGRAMS / "older_agent.c", tmp_path / "newer")], tmp_path)
    assert recording.status == 0
    assert heap_events(recording) == [("pool", EventKind.HEAP_ALLOC, 64)]
    assert recording.trace.counters == recording.trace.labels == ()


def test_wrong_use_is_told_and_harms_nobody(tmp_path: Path) -> None:
    recording = record([compile_client(PROGRAMS / "wrong_use.c", tmp_path / "wrong")], tmp_path)
    assert recording.status == 0
    kinds = [misuse.kind for misuse in recording.trace.misuses]
    assert set(kinds) == set(MisuseKind)
    assert len(kinds) == 256
    summary = etmem.load(recording.path).summary
    said = [issue.message for issue in summary.issues if issue.code is IssueCode.API_MISUSE]
    for text in (
        "scope inner was still open when the one around it ended: it ended there",
        "scope outer was ended twice, or on a thread that did not begin it: the end is left out",
        "scope elsewhere was ended twice, or on a thread that did not begin it: the end is left out",
        "scope no category names the category activatoins, which there is not",
        "scope no category was never ended",
        "heap pool is registered twice: both count as one",
        "heap pool took back what it never handed out",
        "heap pool handed out an address that it had not taken back",
        "beyond was reported with an address or a size that no memory has: it is left out (2 times)",
        "scope strange is of a kind that there is not: it is left out",
    ):
        assert text in said
    assert "caf" in etmem.load(recording.path).text(full=True)
    assert summary.device_memory[0].memory is MemoryKind.OTHER_DEVICE
    assert etmem.load(recording.path).to_json()


def test_many_threads_at_once(tmp_path: Path) -> None:
    recording = record([compile_client(PROGRAMS / "threads.c", tmp_path / "threads")], tmp_path)
    trace = recording.trace
    assert (recording.status, trace.header.dropped_events, trace.misuses) == (0, 0, ())
    assert [heap.name for heap in trace.heaps.values()] == ["pool"]
    assert Counter(kind for _, kind, _ in heap_events(recording)) == {
        EventKind.HEAP_ALLOC: 8 * 500,
        EventKind.HEAP_FREE: 8 * 500,
    }
    work = [scope for scope in trace.scopes.values() if scope.name == "work"]
    assert (len(work), len(trace.counters)) == (8 * 500, 8 * 500)
    assert all(scope.end_stamp is not None for scope in work)
    summary = etmem.load(recording.path).summary
    assert not [issue for issue in summary.issues if issue.code is IssueCode.API_MISUSE]


def test_reports_from_a_signal_handler(tmp_path: Path) -> None:
    recording = record([compile_client(PROGRAMS / "from_signal.c", tmp_path / "signal")], tmp_path)
    trace = recording.trace
    assert recording.status == 0
    assert sum(counter.name == "handled" for counter in trace.counters) + trace.header.dropped_events >= 100
    assert trace.misuses == ()


@pytest.mark.parametrize("compilers", [GCC, CLANG], ids=["gcc", "clang"])
@pytest.mark.parametrize("source", ["pool.c", "pool.cpp"])
def test_examples(source: str, compilers: tuple[str, str], tmp_path: Path) -> None:
    program = compile_client(EXAMPLES / source, tmp_path / "pool", compilers=compilers)
    assert output_of(program) == "recorded: no\n"
    recording = record([program], tmp_path)
    assert (recording.status, recording.trace.misuses) == (0, ())
    profile = etmem.load(recording.path)
    (arena,) = profile.summary.arenas
    used = {user.category: user.used_peak_bytes for user in arena.users}
    scratch = 100_000 if source == "pool.c" else 300_000
    assert (arena.name, arena.owner, arena.used_peak_bytes) == ("example pool", "delegate:Example", 600_000 + scratch)
    assert used == {Category.PACKED_WEIGHTS: 600_000, Category.WORKSPACE: scratch}
    assert "Example example pool" in profile.text(full=True)
    if source == "pool.c":
        (device,) = profile.summary.device_memory
        assert (device.memory, device.peak_bytes, device.live_end_bytes) == (MemoryKind.NPU, 2 << 20, 0)
        (counter,) = profile.summary.counters
        assert (counter.name, counter.maximum) == ("pool in use", 700_000)
