"""Diffs of runs: equal ones, one block more, another model; and of programs."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import etmem
from etmem.bundle.comparing import compare_programs, compare_runs
from etmem.cli.main import run
from etmem.model.words import EXECUTORCH, Category

PLANNED = 9_175_104


@pytest.fixture(scope="module")
def runs(tmp_path_factory, model):
    """Traces of convs twice, of convs with 4 KiB more of planned memory, and of convs in three delegates."""
    folder = tmp_path_factory.mktemp("runs")
    data = model("convs").read_bytes()
    size = PLANNED.to_bytes(8, "little")
    assert data.count(size) == 1
    grown = folder / "grown.pte"
    grown.write_bytes(data.replace(size, (PLANNED + 4096).to_bytes(8, "little")))
    programs = {
        "a": model("convs"),
        "again": model("convs"),
        "grown": grown,
        "three": model("convs_three_delegates"),
    }
    for name, program in programs.items():
        profile = etmem.profile(program, output=folder / f"{name}.etmem")
        (folder / f"{name}.json").write_text(profile.to_json())
    return folder


def test_two_runs_of_one_model_do_not_differ_in_a_byte(runs):
    found = compare_runs(runs / "a.etmem", runs / "again.etmem")
    assert found.empty
    assert found.blocks_compared == "all"
    assert found.mismatches == ()
    assert compare_runs(runs / "a.json", runs / "again.json").empty


def test_one_block_of_four_kibibytes_more_is_found(runs):
    found = compare_runs(runs / "a.etmem", runs / "grown.etmem")
    assert {(c.at, c.owner, c.category, c.delta_bytes) for c in found.changes} == {
        (at, EXECUTORCH, Category.PLANNED_MEMORY, 4096) for at in ("load", "inference", "steady")
    }
    assert {(b.requested_bytes, b.b_count - b.a_count) for b in found.blocks} == {(PLANNED, -1), (PLANNED + 4096, 1)}
    assert [(a.name, a.delta_bytes) for a in found.arenas] == [("planned[1]", 4096)]


def test_operators_and_instances_are_named(runs):
    found = compare_runs(runs / "a.etmem", runs / "three.etmem")
    assert {change.instance for change in found.instances} == {f"forward/XnnpackBackend[{n}]" for n in range(3)}
    assert ("binary_elementwise_nd", Category.PACKED_WEIGHTS) in {(o.operator, o.category) for o in found.operators}
    assert {"graph_break", "delegates", "program file"} <= {reason.subject for reason in found.reasons}


def test_the_command_prints_and_writes(runs, capsys, tmp_path):
    target = tmp_path / "diff.json"
    assert run(["diff", str(runs / "a.etmem"), str(runs / "three.json"), "--json", str(target)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("a.etmem -> three.json     same target, runtime and options\n")
    assert "+7,602,176  ExecuTorch planned memory" in out
    assert json.loads(target.read_text())["blocks_compared"] == "largest"
    assert run(["diff", str(runs / "a.json"), str(runs / "three.json"), "--markdown", "-"]) == 0
    assert capsys.readouterr().out.startswith("### `a.json` ")


def test_two_summaries_are_compared_without_what_a_trace_needs(runs):
    code = "import sys; from etmem.cli.main import run; run(sys.argv[1:]); print('numpy' in sys.modules)"
    command = [sys.executable, "-c", code, "diff", "-q", str(runs / "a.json"), str(runs / "three.json")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "False\n"


def test_programs_are_compared_without_running(runs, model, capsys):
    found = compare_programs(model("convs"), runs / "grown.pte")
    changes = {(c.method, c.what, c.name): c.delta for c in found.changes}
    assert changes.pop(("forward", "planned", "planned[1]")) == 4096
    assert (None, "estimate", "load") in {(None, what, name) for _, what, name in changes}
    assert set(changes.values()) == {4096}
    assert {what.partition(" ")[0] for _, what, _ in changes} == {"estimate"}
    assert run(["diff", str(model("convs")), str(model("convs_three_delegates"))]) == 0
    assert "forward delegates XnnpackBackend" in capsys.readouterr().out
    assert compare_programs(model("mlp"), model("mlp")).empty


def test_a_program_and_a_result_are_refused(runs, model, capsys):
    assert run(["diff", str(model("convs")), str(runs / "a.json")]) == 2
    assert "etmem profile makes a result" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"", b"{}", b'{"schema": "etmem.summary/9"}', b"not a trace at all", b"[1]"])
def test_what_is_no_result_is_refused_in_words(runs, tmp_path, capsys, content):
    bad = tmp_path / "bad"
    bad.write_bytes(content)
    assert run(["diff", str(runs / "a.json"), str(bad)]) == 1
    assert capsys.readouterr().err.startswith("etmem: error: ")
