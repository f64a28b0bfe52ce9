"""ETDumps with memory: the stock Inspector opens them; those with allocation events, wrong and torn ones."""

from __future__ import annotations

import subprocess
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etmem.api import analyze_trace
from etmem.capture import build, executorch
from etmem.devtools.etdump import AllocationEvent, Block, ETDump, ProfileEvent, parse_etdump, read_etdump
from etmem.devtools.etdump_writing import to_bytes
from etmem.devtools.memory_events import INSTRUCTION, RUN, combined, decode, encode, parse_memory
from etmem.model.errors import InputError
from etmem.model.words import PhaseKind
from tests.accuracy.captures import etmem

# torch and executorch warn of their own affairs when they are imported and when they read an ETDump.
pytestmark = pytest.mark.filterwarnings("ignore")

PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture(scope="module")
def run(model, tmp_path_factory) -> Path:
    """A folder with ``t.etmem``, ``t.etdp`` and, by another run, ``a.etmem`` and ``a.etdp`` with allocations."""
    folder = tmp_path_factory.mktemp("run")
    program = folder / "breaks.pte"
    program.write_bytes(model("recorded_breaks").read_bytes())
    for name, more in (("t", ()), ("a", ("--etdump-allocations",))):
        ran = etmem("profile", program, "-o", folder / f"{name}.etmem", "--etdump", folder / f"{name}.etdp", *more)
        assert ran.code == 0, ran.err
        (folder / f"{name}.txt").write_text(ran.out)
    return folder


@pytest.fixture(scope="module")
def tracked(tmp_path_factory) -> Path:
    """The ETDump of a C++ program that tracks its allocations itself."""
    folder = tmp_path_factory.mktemp("tracked")
    found = executorch.find(None)
    program = folder / "track"
    command = [
        "g++", "-std=c++17", "-O0", *build._executorch_flags(found), str(PROGRAMS / "track_allocations.cpp"),
        "-o", str(program), f"-L{found.libraries}", "-lexecutorch_etdump", "-lexecutorch",
        f"-Wl,-rpath,{found.libraries}",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    done = subprocess.run([program, folder / "t.etdp"], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "2"]  # the schema's comment makes them 0 and 1
    return folder / "t.etdp"


def test_the_stock_inspector_opens_it_and_gives_values(run) -> None:
    from executorch.devtools import Inspector

    inspector = Inspector(etdump_path=str(run / "t.etdp"), delegate_metadata_parser=parse_memory)
    (executes,) = [block for block in inspector.event_blocks if block.name == "Execute"]
    memory = [event.delegate_debug_metadatas for event in executes.events if event.name == INSTRUCTION]
    summary, _ = analyze_trace(run / "t.etmem")
    first = [row for row in summary.instructions if row.at == "first" and row.reason is None]
    later = [row for row in summary.instructions if row.at == "later" and row.reason is None]
    assert [one["operator"] for one in memory] == [row.operator for row in first]
    assert [one["allocated_bytes"] for one in memory] == [
        a.allocated_bytes + b.allocated_bytes for a, b in zip(first, later, strict=True)
    ]
    assert [one["peak_bytes"] for one in memory] == [
        max(a.peak_bytes, b.peak_bytes) for a, b in zip(first, later, strict=True)
    ]
    assert [one["planned_live_bytes"] for one in memory] == [row.planned_live_bytes for row in first]
    assert sum(one["allocated_bytes"] for one in memory) > 40_000_000
    frame = inspector.to_dataframe(include_delegate_debug_data=True)
    assert frame["peak_bytes"].max() == summary.peaks.inference.moment.private_bytes + (
        summary.peaks.inference.moment.file_bytes
    )


def test_the_python_runtime_writes_one_too(run, model, tmp_path) -> None:
    from executorch.devtools import Inspector

    program = tmp_path / "breaks.pte"
    program.write_bytes(model("recorded_breaks").read_bytes())
    ran = etmem("profile", program, "--runtime", "python", "--etdump", "p.etdp", "-o", "p.etmem", cwd=tmp_path)
    assert ran.code == 0, ran.err
    inspector = Inspector(etdump_path=str(tmp_path / "p.etdp"), delegate_metadata_parser=parse_memory)
    (executes,) = [block for block in inspector.event_blocks if block.name == "Execute"]
    memory = [event.delegate_debug_metadatas for event in executes.events if event.name == INSTRUCTION]
    native, _ = analyze_trace(run / "t.etmem")
    rows = [row for row in native.instructions if row.at == "first" and row.reason is None]
    assert [one["operator"] for one in memory] == [row.operator for row in rows]
    python, _ = analyze_trace(tmp_path / "p.etmem")
    assert python.delegate_operators == native.delegate_operators
    assert max(one["peak_bytes"] for one in memory) > 40_000_000
    times = [event.perf_data.raw for event in executes.events if event.name == "DELEGATE_CALL"]
    assert times
    assert all(time > 0 for raw in times for time in raw)


def test_an_etdump_that_cannot_be_put_there_costs_no_trace(model, tmp_path) -> None:
    ran = etmem("profile", model("recorded_rows"), "--etdump", "/proc/x.etdp", "-o", "t.etmem", cwd=tmp_path)
    assert ran.code == 1
    assert "cannot write /proc/x.etdp" in ran.err
    assert "Traceback" not in ran.err
    assert analyze_trace(tmp_path / "t.etmem")[0].peaks.inference


def test_times_and_the_delegate_s_own_events_are_as_ever(run) -> None:
    dump = read_etdump(run / "t.etdp")
    own = dump.without(INSTRUCTION, RUN)
    executes = [block for block in own.blocks if block.name == "Execute"]
    assert len(executes) == 2
    for block in executes:
        names = [event.name or event.delegate_name for event in block.profile_events]
        assert names[-1] == "Method::execute"
        assert sum("Convolution" in name for name in names) == 6
        assert all(event.end >= event.start for event in block.profile_events)
        assert block.profile_events[-1].end > block.profile_events[-1].start
    beside = [e for block in dump.blocks for e in block.profile_events if e.delegate_name in (INSTRUCTION, RUN)]
    assert len(beside) == 2 * 6 + 2
    assert all(event.start == event.end for event in beside)


def test_the_report_says_whose_figures_they_are(run) -> None:
    text = (run / "t.txt").read_text()
    assert "times of a second run" in text
    assert "allocate for their timings" in text
    assert "raises" not in text
    assert "raises on\n  allocation events" in (run / "a.txt").read_text()


def test_the_tracer_s_bytes_are_not_in_the_figures(run, model, tmp_path) -> None:
    """Where there is a tracer, XNNPACK allocates for its timings in every execute; else in the first only."""
    summary, _ = analyze_trace(run / "t.etmem")
    inferences = [phase for phase in summary.phases if phase.kind is PhaseKind.INFERENCE]
    assert inferences[-1].allocations == 0


def test_allocation_events_add_up_to_the_phases(run) -> None:
    dump = read_etdump(run / "a.etdp")
    summary, _ = analyze_trace(run / "a.etmem")
    inferences = [phase.allocated_bytes for phase in summary.phases if phase.kind is PhaseKind.INFERENCE]
    executes = [block for block in dump.blocks if block.name == "Execute"]
    assert [sum(size for _, size in block.allocations) for block in executes] == inferences
    loads = sum(phase.allocated_bytes for phase in summary.phases if phase.kind.is_load)
    assert sum(size for block in dump.blocks if block.name != "Execute" for _, size in block.allocations) == loads
    named = Counter(name for block in executes for name, _ in block.allocations)
    assert named["delegate:XnnpackBackend/operator_buffers"] == 6
    from executorch.devtools import Inspector

    with pytest.raises(ValueError, match="populated event"):
        Inspector(etdump_path=str(run / "a.etdp"))


def test_ids_of_any_producer_are_names(tracked) -> None:
    (block,) = read_etdump(tracked).blocks
    assert block.allocators == ("planned", "scratch")
    assert block.allocations == (("planned", 1000), ("scratch", 20), ("planned", 3))
    from_zero = replace(block, events=tuple(
        replace(e, allocator=e.allocator - 1) if isinstance(e, AllocationEvent) else e for e in block.events
    ))  # fmt: skip
    assert from_zero.allocations == block.allocations


def test_what_is_written_is_read_again(run, tracked) -> None:
    for path in (run / "t.etdp", run / "a.etdp", tracked):
        dump = read_etdump(path)
        assert replace(parse_etdump(to_bytes(dump)), path=dump.path) == dump


texts = st.none() | st.text(max_size=6)
numbers = st.integers(-1, 2**31 - 1)
events = st.one_of(
    st.builds(AllocationEvent, numbers, st.integers(0, 2**64 - 1)),
    st.builds(
        ProfileEvent,
        texts,
        numbers,
        numbers,
        numbers,
        texts,
        st.none() | st.binary(max_size=5),
        st.integers(0, 2**64 - 1),
        st.integers(0, 2**64 - 1),
    ),
)
blocks = st.builds(
    Block, st.text(max_size=5), numbers, st.lists(st.text(max_size=5), max_size=3).map(tuple),
    st.lists(events, max_size=5).map(tuple),
)  # fmt: skip


@given(st.builds(ETDump, st.just("x"), st.integers(0, 9), st.lists(blocks, max_size=3).map(tuple)))
def test_any_etdump_comes_back(dump) -> None:
    assert parse_etdump(to_bytes(dump), "x") == dump


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.7, 0.99])
def test_a_torn_one_is_refused(share, run, tmp_path) -> None:
    data = (run / "t.etdp").read_bytes()
    (tmp_path / "torn").write_bytes(data[: int(len(data) * share)])
    with pytest.raises(InputError) as caught:
        read_etdump(tmp_path / "torn")
    assert "\n" not in caught.value.message


@given(st.data())
def test_a_changed_one_is_read_or_refused(data) -> None:
    event = ProfileEvent("a", 0, 1, -1, "b", b"c", 1, 2)
    sound = bytearray(to_bytes(ETDump("x", 0, (Block("Execute", -1, ("n",), (event, AllocationEvent(1, 2))),))))
    for _ in range(data.draw(st.integers(1, 4))):
        sound[data.draw(st.integers(0, len(sound) - 1))] = data.draw(st.integers(0, 255))
    with suppress(InputError):
        parse_etdump(bytes(sound))


def test_what_is_not_etmem_s_gives_nothing() -> None:
    assert parse_memory([]) == {}
    assert parse_memory(["", b"\x00\xff", b"{}", b'{"etmem":2,"peak_bytes":1}', b'{"etmem"' + b"[" * 100_000]) == {}
    assert decode(encode({"peak_bytes": 3})) == {"peak_bytes": 3}
    values = [{"peak_bytes": 3, "allocated_bytes": 1, "operator": "a"}, {"peak_bytes": 2, "allocated_bytes": 5}]
    assert combined(values) == {"peak_bytes": 3, "allocated_bytes": 6, "operator": "a"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--dry", "--etdump", "x.etdp"), "dry"),
        (("--etdump-allocations",), "needs --etdump"),
        (("--cycles", "2", "--etdump", "x.etdp"), "--cycles"),
        (("--etdump", "no/folder/x.etdp"), "not a folder"),
    ],
)
def test_what_has_no_etdump_is_told_before_anything_runs(arguments, says, model, tmp_path) -> None:
    ran = etmem("profile", model("recorded_rows"), *arguments, cwd=tmp_path)
    assert ran.code == 2
    assert says in ran.err
    assert not list(tmp_path.glob("*.etmem"))
