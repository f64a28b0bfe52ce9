"""Every export against its golden, and read back by a reader of its format."""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import CounterDescriptor, Trace, TrackEvent
from pyarrow import parquet

from etmem.analysis.symbols import Symbolizer
from etmem.model.codec import to_data
from etmem.model.errors import EtmemError
from etmem.program import read
from etmem.report.chrome import render as chrome
from etmem.report.data import report_data
from etmem.report.exports import BY_NAME, EXPORTS, render, write
from etmem.report.pprof import SAMPLE_TYPES
from etmem.report.stacks import AT
from etmem.report.view import View
from tests.report import pprof_reader
from tests.report.views import HOSTILE, MIB, ODD, small, view_of

GOLDENS = Path(__file__).with_name("goldens") / "exports"
UPDATE = "ETMEM_UPDATE_GOLDENS"
PROGRAM = Path(__file__).parents[2] / "examples" / "convs_three_delegates.pte"
FILES = [export.name for export in EXPORTS if not export.folder]
FOLDERS = [export.name for export in EXPORTS if export.folder]


@pytest.fixture
def view(monkeypatch) -> View:
    """The small run, with the names of its made-up frames, and a real program's plan."""
    world = small()

    def stack(_self, frames):
        return [world.symbols.get(frame, "") for frame in frames]

    monkeypatch.setattr(Symbolizer, "stack", stack)
    found = view_of(world, programs={"/models/small.pte": read(PROGRAM)})
    assert found.plans
    return found


def peak(view: View) -> int:
    moment = getattr(view.summary.peaks, view.highest).moment
    return moment.private_bytes + moment.file_bytes


def readable(name: str, content: bytes) -> str:
    """What a golden holds: text as it is, messages field by field, the page's data without the page."""
    if name == "pprof":
        return str(pprof_reader.parse(content))
    if name == "perfetto":
        return str(Trace.FromString(content))
    return json.dumps(json.loads(content), indent=1) if name in ("speedscope", "chrome") else content.decode()


def compare(name: str, text: str) -> None:
    path = GOLDENS / name
    if os.environ.get(UPDATE):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [name for name in FILES if name != "html"])
def test_golden_of_a_file(view, name):
    compare(f"{name}.txt", readable(name, render(name, view)))


def test_golden_of_the_pages_data(view):
    data = to_data(report_data(view))
    del data["words"], data["summary"]
    compare("html.txt", json.dumps(data, indent=1))


@pytest.mark.parametrize("name", FOLDERS)
def test_golden_of_a_folder(view, tmp_path, name):
    write(name, view, tmp_path)
    for path in sorted(tmp_path.iterdir()):
        text = parquet.read_table(path).to_pydict() if name == "parquet" else None
        compare(f"{name}-{path.stem}.txt", path.read_text() if text is None else json.dumps(text, indent=1))


def test_collapsed_lines_add_up_to_the_peak(view):
    lines = render("collapsed", view).decode().splitlines()
    parsed = [re.fullmatch(r"(.+) (\d+)", line) for line in lines]
    assert sum(int(match[2]) for match in parsed) == peak(view)
    assert any("method_load forward;XnnpackBackend[0] init;" in match[1] for match in parsed)


def test_speedscope_profiles_add_up(view):
    data = json.loads(render("speedscope", view))
    frames = len(data["shared"]["frames"])
    for profile in data["profiles"]:
        assert profile["endValue"] == sum(profile["weights"])
        assert len(profile["samples"]) == len(profile["weights"])
        assert all(0 <= frame < frames for sample in profile["samples"] for frame in sample)
    for at, profile in zip(AT, data["profiles"], strict=False):
        moment = getattr(view.summary.peaks, at).moment
        assert profile["endValue"] == moment.private_bytes + moment.file_bytes
    allocated = sum(phase.allocated_bytes for phase in view.summary.phases)
    assert data["profiles"][-1]["endValue"] == allocated + 2 * MIB, "planned memory comes before any phase"


def test_pprof_holds_both_spaces(view):
    profile = pprof_reader.parse(render("pprof", view))
    strings = profile.string_table
    types = [(strings[one.type], strings[one.unit]) for one in profile.sample_type]
    assert types == list(SAMPLE_TYPES)
    inuse = types.index(("inuse_space", "bytes"))
    assert sum(sample.value[inuse] for sample in profile.sample) == peak(view)
    functions = {one.id: strings[one.name] for one in profile.function}
    lines = {one.id: functions[one.line[0].function_id] for one in profile.location}
    paths = {tuple(lines[location] for location in sample.location_id) for sample in profile.sample}
    assert all(path[-1].startswith(("program_load", "method_load", "inference", "outside")) for path in paths)
    owners = {
        strings[label.str] for sample in profile.sample for label in sample.label if strings[label.key] == "owner"
    }
    assert owners == {"executorch", "delegate:XnnpackBackend"}
    assert strings[profile.default_sample_type] == "inuse_space"
    assert gzip.decompress(render("pprof", view)) == gzip.decompress(render("pprof", view))


def go_pprof(path: Path, *options: str) -> str:
    command = ["go", "tool", "pprof", *options, str(path)]
    environment = {**os.environ, "PPROF_TMPDIR": str(path.parent), "HOME": str(path.parent)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("name", ["inuse_space", "alloc_space"])
def test_pprof_itself_reads_it(view, tmp_path, name):
    path = tmp_path / "small.pb.gz"
    path.write_bytes(render("pprof", view))
    text = go_pprof(path, "-top", f"-sample_index={name}", "-unit=B", "-nodefraction=0")
    total = peak(view) if name == "inuse_space" else sum(row.allocated.bytes for row in view.stacks.rows)
    assert f"Type: {name}" in text
    assert f"Showing nodes accounting for {total}B, 100% of {total}B total" in text
    flat = {line.split(maxsplit=5)[5]: line.split()[0] for line in text.splitlines()[5:]}
    assert flat["XnnpackBackend packed_weights"] == f"{3 * MIB}B"
    assert "owner: Total" in go_pprof(path, "-tags", f"-sample_index={name}")


def test_perfetto_counters_reach_the_peak_and_slices_nest(view):
    trace = Trace.FromString(render("perfetto", view))
    names = {p.track_descriptor.uuid: p.track_descriptor.name for p in trace.packet if p.HasField("track_descriptor")}
    counters: dict[str, list[int]] = {}
    slices: list[str] = []
    open_slices: dict[int, int] = {}
    last: dict[int, int] = {}
    for packet in trace.packet:
        event = packet.track_event
        if not packet.HasField("track_event"):
            continue
        assert packet.timestamp >= last.get(event.track_uuid, 0), "a track goes forward"
        last[event.track_uuid] = packet.timestamp
        if event.type == TrackEvent.TYPE_COUNTER:
            counters.setdefault(names[event.track_uuid], []).append(event.counter_value)
        elif event.type == TrackEvent.TYPE_SLICE_BEGIN:
            slices.append(event.name)
            open_slices[event.track_uuid] = open_slices.get(event.track_uuid, 0) + 1
        else:
            open_slices[event.track_uuid] -= 1
    assert set(open_slices.values()) == {0}
    assert {"program_load", "method_load forward", "XnnpackBackend[0] init", "inference forward"} <= set(slices)
    assert "instruction 1: aten::add.out" in slices
    assert max(counters["delegate:XnnpackBackend"]) == 4 * MIB
    assert max(counters["delegate:XnnpackBackend (file)"]) == 3 * MIB
    assert max(counters["executorch: planned_memory"]) == 2 * MIB
    assert max(counters["RSS"]) == 10 * MIB
    assert max(counters["RSS high water"]) == 11 * MIB


def test_perfetto_has_what_the_program_told():
    trace = Trace.FromString(render("perfetto", view_of(ODD["told"]())))
    tracks = {p.track_descriptor.uuid: p.track_descriptor for p in trace.packet if p.HasField("track_descriptor")}
    values: dict[str, list[int]] = {}
    for packet in trace.packet:
        if packet.HasField("track_event") and packet.track_event.type == TrackEvent.TYPE_COUNTER:
            values.setdefault(tracks[packet.track_event.track_uuid].name, []).append(packet.track_event.counter_value)
    assert values["counter: queue"] == [3, -2]
    assert values["counter: gpu.allocated"] == [40 * MIB, 39 * MIB]
    assert max(values[f"device: frames {HOSTILE}"]) == 40 * MIB
    units = {track.name: track.counter.unit for track in tracks.values() if track.HasField("counter")}
    assert units["counter: queue"] == CounterDescriptor.UNIT_COUNT
    assert units["counter: gpu.allocated"] == CounterDescriptor.UNIT_SIZE_BYTES


def test_chrome_slices_are_the_plans_storages(view):
    events = [e for e in json.loads(chrome(view))["traceEvents"] if e["ph"] == "X"]
    (plan,) = view.plans
    for time in range(len(plan.instructions)):
        mine = [event for event in events if event["tid"] == time]
        assert sum(event["dur"] for event in mine) == plan.live_bytes[time + 1]
        assert all(event["ts"] + event["dur"] <= plan.buffers[0][1] for event in mine)
    assert {event["pid"] for event in events} == {1}


def test_markdown_is_tables_that_agree_with_the_summary(view):
    text = render("markdown", view).decode()
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    widths = {len(row) for row in rows}
    assert widths == {5}
    steady = next(row for row in rows if row[0].strip() == "steady")
    moment = view.summary.peaks.steady.moment
    assert float(steady[1]) == pytest.approx((moment.private_bytes + moment.file_bytes) / MIB, abs=0.05)


def test_csv_and_parquet_hold_the_same_rows(view, tmp_path):
    write("csv", view, tmp_path / "csv")
    write("parquet", view, tmp_path / "parquet")
    for path in sorted((tmp_path / "csv").iterdir()):
        with path.open(newline="") as file:
            plain = list(csv.DictReader(file))
        table = parquet.read_table(tmp_path / "parquet" / f"{path.stem}.parquet").to_pylist()
        assert [{k: "" if v is None else str(v) for k, v in row.items()} for row in table] == plain
    with (tmp_path / "csv" / "blocks.csv").open(newline="") as file:
        counted = [row for row in csv.DictReader(file) if row["owner"] == "delegate:XnnpackBackend"]
    assert sum(int(row["requested_bytes"]) for row in counted) == 7 * MIB


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("name", BY_NAME)
def test_odd_traces_can_be_exported(tmp_path, name, odd):
    write(name, view_of(ODD[odd]()), tmp_path / "out")
    content = tmp_path / "out"
    files = [content] if content.is_file() else list(content.iterdir())
    assert files
    assert all(file.stat().st_size > 0 for file in files) or name == "collapsed"


def test_names_from_files_break_no_format(tmp_path):
    view = view_of(ODD["hostile"]())
    for line in render("collapsed", view).decode("ascii").splitlines():
        assert re.fullmatch(r"[^\n]+ \d+", line)
        assert line.count(";") < 8
    text = render("markdown", view).decode("ascii")
    assert "<img" not in text.replace("\\<", "")
    assert HOSTILE[:4] not in render("html", view).decode().partition("<main")[0]
    write("csv", view, tmp_path)
    with (tmp_path / "operators.csv").open(newline="") as file:
        assert any(row["operator"] == HOSTILE * 100 for row in csv.DictReader(file))


@pytest.mark.parametrize("name", BY_NAME)
def test_a_place_that_cannot_be_written_is_said(view, tmp_path, name):
    (tmp_path / "file").write_text("")
    with pytest.raises(EtmemError, match="cannot write"):
        write(name, view, tmp_path / "file" / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
