"""ETRecords: source lines joined by debug handles; wrong, torn and hostile ones are refused, and nothing runs."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etmem import api
from etmem.devtools.etrecord import read_etrecord
from etmem.devtools.joining import beside
from etmem.devtools.sources import with_sources
from etmem.devtools.stack_traces import own_frame, parse_stack_trace
from etmem.devtools.trusted_etrecord import read_trusted_etrecord
from etmem.model.errors import InputError
from etmem.model.summary import ProgramInfo
from etmem.model.words import IssueCode
from tests.accuracy.captures import etmem
from tests.analysis.worlds import World, summary

NAMES = ("recorded_convs", "recorded_breaks", "recorded_rows", "recorded_methods")


@pytest.fixture(scope="module")
def traces(model, tmp_path_factory) -> dict[str, Path]:
    """A trace of each model, made where no ETRecord lies beside the program."""
    folder = tmp_path_factory.mktemp("traces")
    found = {}
    for name in NAMES:
        program = folder / f"{name}.pte"
        program.write_bytes(model(name).read_bytes())
        found[name] = folder / f"{name}.etmem"
        ran = etmem("profile", program, "-o", found[name], "-q")
        assert ran.code == 0, ran.err
    return found


def record_of(model, name: str) -> Path:
    return model(name).with_suffix(".etrecord")


def rewritten(source: Path, target: Path, changes: dict[str, object]) -> Path:
    """A copy with some entries replaced; None takes one away."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            value = changes.get(name, old.read(name))
            if value is not None:
                new.writestr(name, value if isinstance(value, bytes) else json.dumps(value))
    return target


@pytest.mark.parametrize("name", NAMES)
def test_every_kernel_has_its_line(name, model, traces) -> None:
    summary = with_sources(api.load(traces[name]).summary, read_etrecord(record_of(model, name)))
    kernels = [row for row in summary.instructions if row.reason is None]
    assert kernels
    assert all(row.sources for row in kernels)
    files = {Path(source.file).name for row in kernels for source in row.sources}
    assert files <= {"cases.py", "recorded.py"}


def test_a_kernel_s_line_is_the_one_in_the_model(model, traces) -> None:
    summary = with_sources(api.load(traces["recorded_rows"]).summary, read_etrecord(record_of(model, "recorded_rows")))
    (row,) = [row for row in summary.instructions if row.operator == "aten::cumsum.out" and row.at == "first"]
    (source,) = row.sources
    line = (Path(__file__).parents[1] / "models" / "recorded.py").read_text().splitlines()[source.line - 1]
    assert "torch.cumsum" in line
    assert source.text == line.strip()
    assert (source.function, source.operator) == ("forward", "aten.cumsum.default")
    modules = {source.module for row in summary.instructions for source in row.sources}
    assert {"first", "second"} <= modules


def test_which_line_makes_the_peak_is_in_the_first_screen(model, traces) -> None:
    ran = etmem("report", traces["recorded_breaks"], "--etrecord", record_of(model, "recorded_breaks"))
    assert ran.code == 0
    screen = ran.out.partition("FINDINGS")[0]
    assert "LINES AT THE PEAK OF INFERENCE" in screen
    assert "planned, aten::cumsum.out" in screen
    assert "cases.py:" in screen
    assert all(len(line) <= 80 for line in ran.out.splitlines())


def test_delegates_have_the_lines_of_what_they_took(model, traces) -> None:
    summary = with_sources(
        api.load(traces["recorded_breaks"]).summary, read_etrecord(record_of(model, "recorded_breaks"))
    )
    calls = [row for row in summary.instructions if row.instance and row.at == "first"]
    assert [{source.operator for source in row.sources} for row in calls] == [
        {"aten.convolution.default", "aten.relu.default"},
        {"aten.convolution.default", "aten.relu.default", "aten.mul.Tensor"},
        {"aten.convolution.default", "aten.relu.default", "aten.mul.Tensor"},
    ]
    assert {source.module for source in calls[0].sources} >= {"layers.0", "layers.1"}
    between = [row for row in summary.planned_tensors if row.writer == "aten::cumsum.out"]
    assert all("graph_break" in row.sources[0].text or "cumsum" in row.sources[0].text for row in between)


def test_one_beside_the_model_is_found(model, tmp_path) -> None:
    ran = etmem("profile", model("recorded_rows"), "-o", tmp_path / "t.etmem")
    assert "LINES AT THE PEAK OF INFERENCE" in ran.out, ran.err


@pytest.mark.parametrize("path", ["/", "..", ".", "a\0.pte"])
def test_a_program_without_a_name_has_none_beside_it(path: str) -> None:
    """A trace may name any path."""
    program = ProgramInfo(program=1, path=path, file_bytes=None, methods=())
    assert beside(replace(summary(World()), programs=(program,))) is None


def test_one_beside_the_model_that_is_another_s_is_an_issue(model, tmp_path) -> None:
    (tmp_path / "m.pte").write_bytes(model("recorded_breaks").read_bytes())
    (tmp_path / "m.etrecord").write_bytes(record_of(model, "recorded_convs").read_bytes())
    profile = api.profile(tmp_path / "m.pte", output=tmp_path / "m.etmem")
    (issue,) = [one for one in profile.summary.issues if one.code is IssueCode.ETRECORD_REFUSED]
    assert "another program" in issue.message
    assert not any(part.sources for part in profile.summary.peak_parts)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("other", NAMES)
def test_a_wrong_pair_is_refused(name, other, model, traces) -> None:
    summary, record = api.load(traces[name]).summary, read_etrecord(record_of(model, other))
    if name == other:
        assert with_sources(summary, record)
        return
    with pytest.raises(InputError, match="another program"):
        with_sources(summary, record)


def test_the_same_graph_with_another_input_is_refused(model, traces, tmp_path) -> None:
    source = record_of(model, "recorded_convs")
    entry = "edge_dialect_exported_program/forward"
    with zipfile.ZipFile(source) as archive:
        program = json.loads(archive.read(entry))
    program["graph_module"]["graph"]["tensor_values"]["x"]["sizes"][2] = {"as_int": 128}
    changed = rewritten(source, tmp_path / "r", {entry: program})
    with pytest.raises(InputError, match=r"input 0 of forward is 1x3x128x256 by it, and was 1x3x256x256"):
        with_sources(api.load(traces["recorded_convs"]).summary, read_etrecord(changed))


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_torn_one_is_refused(share, model, tmp_path) -> None:
    data = record_of(model, "recorded_rows").read_bytes()
    path = tmp_path / "torn"
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(InputError) as caught:
        read_etrecord(path)
    assert caught.value.hint
    ran = etmem("report", path, "--etrecord", path)
    assert ran.code == 1
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("ETRECORD_V0", None),
        ("debug_handle_map", None),
        ("debug_handle_map", b"not json"),
        ("debug_handle_map", [1]),
        ("debug_handle_map", {"forward": {"zero": 1}}),
        ("debug_handle_map", {"forward": {"0": "one"}}),
        ("debug_handle_map", {"forward": {"0": True}}),
        ("debug_handle_map", {"forward": 3}),
        ("debug_handle_map", b"[" * 100_000),
        ("delegate_map", {"forward": {"0": {"delegate_map": {}}}}),
        ("delegate_map", {"forward": {"0": 1}}),
        ("edge_dialect_exported_program/forward", {"graph_module": {}}),
        ("edge_dialect_exported_program/forward", {"graph_module": {"graph": {"nodes": [1]}}}),
        ("edge_dialect_exported_program/forward", b"\xff\xfe"),
    ],
)
def test_one_that_lies_is_refused_in_a_line(entry, value, model, tmp_path) -> None:
    path = rewritten(record_of(model, "recorded_rows"), tmp_path / "r", {entry: value})
    with pytest.raises(InputError) as caught:
        read_etrecord(path)
    assert "\n" not in caught.value.message


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_executorch_s_own_reader_says_the_same(name, model) -> None:
    """The whole record: handles, delegate maps, nodes with their traces and shapes, inputs."""
    assert read_trusted_etrecord(record_of(model, name)) == read_etrecord(record_of(model, name))


def test_a_trusted_one_gives_the_same_screen(model, traces) -> None:
    record = record_of(model, "recorded_breaks")
    own = etmem("report", traces["recorded_breaks"], "--etrecord", record)
    trusted = etmem("report", traces["recorded_breaks"], "--etrecord", record, "--trust-etrecord")
    assert (trusted.code, trusted.out) == (0, own.out)


@pytest.mark.parametrize(
    ("entry", "value"), [("ETRECORD_V0", None), ("debug_handle_map", None), ("debug_handle_map", b"not json")]
)
def test_a_trusted_one_that_is_damaged_is_refused_in_a_line(entry, value, model, traces, tmp_path) -> None:
    path = rewritten(record_of(model, "recorded_rows"), tmp_path / "r", {entry: value})
    ran = etmem("report", traces["recorded_rows"], "--etrecord", path, "--trust-etrecord")
    assert ran.code == 1
    assert "Traceback" not in ran.err
    assert "hint: " in ran.err


def test_nothing_in_a_hostile_one_is_executed(model, traces, tmp_path) -> None:
    """Upstream's reader gives ``expr_str`` to sympy, which evaluates it, and unpickles the tensors."""
    source, entry = record_of(model, "recorded_rows"), "edge_dialect_exported_program/forward"
    proof = tmp_path / "ran"
    attack = f"__import__('pathlib').Path({str(proof)!r}).touch()"
    with zipfile.ZipFile(source) as archive:
        program = json.loads(archive.read(entry))
        names = archive.namelist()
    for value in program["graph_module"]["graph"]["tensor_values"].values():
        value["sizes"] = [{"as_expr": {"expr_str": attack, "hint": {"as_int": 4}}} for _ in value["sizes"]]
    program["range_constraints"] = {attack: {"min_val": attack, "max_val": attack}}
    for node in program["graph_module"]["graph"]["nodes"]:
        node["metadata"]["nn_module_stack"] = attack
        node["metadata"]["stack_trace"] = f'File "{attack}", line 1, in {attack}\n    {attack}'
    evil = b"cpathlib\nPath\n(V" + str(proof).encode() + b"\ntR."
    pickles = {name: evil for name in names if name.endswith(("_constants", "_state_dict", "_example_inputs"))}
    path = rewritten(source, tmp_path / "hostile", {entry: program, **pickles})
    summary = with_sources(api.load(traces["recorded_rows"]).summary, read_etrecord(path))
    assert summary.instructions[0].sources
    ran = etmem("report", traces["recorded_rows"], "--etrecord", path, "--full")
    assert ran.code == 0, ran.err
    assert not proof.exists()


def test_a_text_that_unpacks_without_end_is_refused(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("etmem.devtools.etrecord.MAX_ENTRY", 1000)
    with zipfile.ZipFile(tmp_path / "bomb", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("ETRECORD_V0", "")
        archive.writestr("debug_handle_map", "[" + " " * 1_000_000 + "]")
    with pytest.raises(InputError, match="larger"):
        read_etrecord(tmp_path / "bomb")


TRACE = """File "/home/me/model.py", line 12, in forward
    y = self.block(x)
  File "/home/me/block.py", line 3, in forward
    return self.conv(x)
  File "/usr/lib/python3.11/site-packages/torch/nn/modules/conv.py", line 5, in forward
    return self._conv_forward(input)
"""


def test_the_innermost_own_frame_is_the_line() -> None:
    frame = own_frame(parse_stack_trace(TRACE))
    assert frame is not None
    assert (frame.file, frame.line, frame.function, frame.text) == (
        "/home/me/block.py", 3, "forward", "return self.conv(x)",
    )  # fmt: skip
    library = parse_stack_trace(TRACE)[2:]
    assert own_frame(library) == library[-1]
    assert own_frame(()) is None


@given(st.text())
def test_any_text_is_a_stack_trace_of_some_frames(text) -> None:
    for frame in parse_stack_trace(text):
        assert frame.line >= 0
