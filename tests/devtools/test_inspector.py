"""MemoryInspector: Inspector's blocks, frame and totals, with memory beside time."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from etmem.api import analyze_trace
from etmem.devtools import MemoryInspector
from etmem.devtools.memory_events import COLUMNS
from etmem.model.errors import InputError, UsageError
from tests.accuracy.captures import etmem
from tests.devtools.test_etdump import run, tracked  # noqa: F401 -- fixtures

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def record(model) -> Path:
    return model("recorded_breaks").with_suffix(".etrecord")


@pytest.fixture(scope="module")
def inspector(run, record) -> MemoryInspector:  # noqa: F811
    return MemoryInspector(trace=run / "t.etmem", etdump_path=run / "t.etdp", etrecord=record)


def test_one_row_per_event_with_time_and_memory(inspector, run) -> None:  # noqa: F811
    from executorch.devtools import Inspector

    frame = inspector.to_dataframe()
    assert len(frame) == sum(len(block.events) for block in inspector.event_blocks)
    stock = Inspector(etdump_path=str(run / "t.etdp")).to_dataframe()
    assert list(frame.columns) == [*stock.columns, *COLUMNS]
    summary, _ = analyze_trace(run / "t.etmem")
    calls = frame[frame["event_name"] == "DELEGATE_CALL"]
    rows = [row for row in summary.instructions if row.instance and row.at == "first"]
    assert calls["allocated_bytes"].tolist() == [row.allocated_bytes for row in rows]
    assert (calls["avg (ms)"] > 0).all()
    (execute,) = frame[frame["event_name"] == "Method::execute"].to_dict("records")
    assert execute["peak_bytes"] == summary.peaks.inference.moment.private_bytes + (
        summary.peaks.inference.moment.file_bytes
    )
    (load,) = frame[frame["event_name"] == "Program::load_method"].to_dict("records")
    assert load["allocated_bytes"] == sum(p.allocated_bytes for p in summary.phases if p.kind == "method_load")


def test_the_table_shows_both(inspector) -> None:
    text = io.StringIO()
    inspector.print_data_tabular(text)
    header, *rows = text.getvalue().splitlines()
    for column in ("event_name", "avg (ms)", "op_types", "peak_bytes", "allocated_bytes", "planned_live_bytes"):
        assert column in header
    assert any("native_call_cumsum.out" in row and "16777216" in row for row in rows)
    assert not any("OPERATOR_CALL" in row or "etmem." in row for row in rows)


def test_modules_and_lines_come_without_upstream_s_reader(inspector) -> None:
    (block,) = [block for block in inspector.event_blocks if block.name == "Execute"]
    cumsum = next(event for event in block.events if event.name == "native_call_cumsum.out")
    assert cumsum.op_types == ["aten.cumsum.default"]
    assert any("cases.py" in trace for trace in cumsum.stack_traces.values())
    call = next(event for event in block.events if event.name == "DELEGATE_CALL")
    assert call.delegate_backend_name == "XnnpackBackend"
    assert inspector.find_total_for_module("layers.2") == pytest.approx(
        next(e for e in block.events if e.name == "DELEGATE_CALL" and e._instruction_id == 2).perf_data.avg
    )
    assert inspector.find_memory_for_module("layers.2") > 9_000_000
    assert inspector.find_memory_for_module("no such module") == 0


def test_upstream_s_reader_gives_the_same_where_it_is_trusted(run, record, inspector) -> None:  # noqa: F811
    trusted = MemoryInspector(run / "t.etmem", run / "t.etdp", etrecord=record, trust_etrecord=True)
    ours, theirs = inspector.to_dataframe(), trusted.to_dataframe()
    own = ours["event_name"].isin(["DELEGATE_CALL", "native_call_cumsum.out", "native_call_mean.out"])
    for name in ("op_types", "delegate_backend_name"):
        assert ours[own][name].tolist() == theirs[own][name].tolist()
    for module in ("layers.0", "layers.2", "layers.5"):
        assert inspector.find_total_for_module(module) == trusted.find_total_for_module(module) > 0


def test_a_trace_alone_has_its_own_times(run) -> None:  # noqa: F811
    frame = MemoryInspector(run / "t.etmem").to_dataframe()
    assert (frame["avg (ms)"] > 0).all()
    assert frame[frame["event_name"] == "DELEGATE_CALL"]["allocated_bytes"].sum() > 40_000_000


def test_one_with_allocation_events_opens(run) -> None:  # noqa: F811
    inspector = MemoryInspector(run / "a.etmem", run / "a.etdp")
    assert ("Execute", "delegate:XnnpackBackend/workspace") in {entry[:2] for entry in inspector.allocations}
    data = MemoryInspector(run / "a.etmem", etdump_data=(run / "a.etdp").read_bytes())
    assert data.allocations == inspector.allocations


def test_another_run_s_etdump_is_refused(run, tracked, model, tmp_path) -> None:  # noqa: F811
    with pytest.raises(InputError, match="another run"):
        MemoryInspector(run / "t.etmem", run / "a.etdp")
    with pytest.raises(InputError, match="another run"):
        MemoryInspector(run / "t.etmem", tracked)
    with pytest.raises(UsageError):
        MemoryInspector(run / "t.etmem", run / "t.etdp", etdump_data=b"")
    wrong = model("recorded_convs").with_suffix(".etrecord")
    with pytest.raises(InputError, match="another program"):
        MemoryInspector(run / "t.etmem", run / "t.etdp", etrecord=wrong)


SCRIPT = """
import sys, torch
from executorch.extension.pybindings.portable_lib import _load_for_executorch
module = _load_for_executorch(sys.argv[1], enable_etdump=True)
for _ in range(2):
    module.run_method("forward", (torch.zeros(1, 3, 256, 256),))
module.write_etdump_result_to_file(sys.argv[2])
"""


def test_a_program_s_own_etdump_under_etmem_run(model, tmp_path) -> None:
    """The program writes it; the times say whether it is of this run."""
    (tmp_path / "run.py").write_text(SCRIPT)
    for name in ("one", "other"):
        ran = etmem(
            "run", "-q", "-o", tmp_path / f"{name}.etmem", "--",
            sys.executable, "-W", "ignore", tmp_path / "run.py", model("recorded_breaks"), tmp_path / f"{name}.etdp",
        )  # fmt: skip
        assert (tmp_path / f"{name}.etdp").is_file(), ran.err
    frame = MemoryInspector(tmp_path / "one.etmem", tmp_path / "one.etdp").to_dataframe()
    assert frame[frame["event_name"] == "DELEGATE_CALL"]["allocated_bytes"].sum() > 40_000_000
    with pytest.raises(InputError, match="times are those of another run"):
        MemoryInspector(tmp_path / "one.etmem", tmp_path / "other.etdp")
