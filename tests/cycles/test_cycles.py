"""Leak or retention: R6 (a 64 MiB model loaded again and again), and a delegate that leaks 1,000 bytes a cycle."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from etmem.analysis.cycles import _grows, cycles
from etmem.api import analyze_trace
from etmem.cli.main import run
from etmem.model.words import Category
from etmem.report.cycles import render
from tests.accuracy.delegate.building import compile_with_executorch

MIB = 1024 * 1024
CYCLES = 4


def profile(model: Path, folder: Path, *options: str) -> tuple[dict, Path]:
    trace, result = folder / "t.etmem", folder / "cycles.json"
    code = run(
        ["profile", str(model), "-o", str(trace), "-q", "--json", str(result), "--cycles", str(CYCLES), *options]
    )
    assert code == 0
    return json.loads(result.read_text()), trace


def test_what_malloc_keeps_is_no_leak(model, tmp_path, capsys):
    found, trace = profile(model("mlp"), tmp_path)
    assert found["schema"] == "etmem.cycles/1"
    assert found["complete"]
    assert found["leaks"] == []
    assert found["leaked_bytes_per_cycle"] == 0
    assert len({cycle["live_bytes"] for cycle in found["cycles"]}) == 1
    # From the second cycle on malloc no longer gives a large block a mapping of its own, and keeps what is freed.
    assert max(cycle["retained_bytes"] for cycle in found["cycles"]) > 60 * MIB
    assert all(cycle["rss_growth_trimmed_bytes"] < 8 * MIB for cycle in found["cycles"])
    text = render(cycles(analyze_trace(trace)[1]), name="mlp.pte")
    assert "NO LEAK" in text
    assert "RETENTION  up to 64." in text


@pytest.fixture(scope="module")
def leaking(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("leaking")
    source = Path(__file__).with_name("leaking.cpp")
    return compile_with_executorch(source, folder / "libleaking.so", "-shared", "-fPIC")


def test_a_thousand_bytes_a_cycle_are_a_leak_with_its_stack(model, leaking, tmp_path):
    found, trace = profile(model("unknown_backend"), tmp_path, "--library", str(leaking))
    (leak,) = found["leaks"]
    assert (leak["owner"], leak["instance"]) == ("delegate:NoSuchBackend", "forward/NoSuchBackend[0]")
    assert (leak["requested_bytes"], leak["bytes_per_cycle"], leak["blocks_per_cycle"]) == (1000, 1000, 1)
    assert leak["live_blocks"] == [1, 2, 3, 4]
    assert leak["phase"] == "method_load"
    assert "lose_a_block" in leak["stack"][:2]
    assert found["leaked_bytes_per_cycle"] == 1000
    # The block that is kept once is live too, and is no leak.
    mine = [next(o for o in cycle["owners"] if o["owner"] == leak["owner"]) for cycle in found["cycles"]]
    assert [one["bytes"] for one in mine] == [3000, 4000, 5000, 6000]
    assert [one["blocks"] for one in mine] == [2, 3, 4, 5]
    result = cycles(analyze_trace(trace)[1])
    text = render(result, name="x.pte")
    assert "LEAK  1,000 B a cycle." in text
    assert "lose_a_block" in text
    assert result.leaks[0].category is Category.METADATA


def test_the_trace_of_one_cycle_is_none_of_cycles(model, tmp_path):
    assert run(["profile", str(model("convs")), "-q", "-o", str(tmp_path / "t.etmem")]) == 0
    assert cycles(analyze_trace(tmp_path / "t.etmem")[1]) is None


def test_a_dry_run_has_no_rss_to_tell_from(model, tmp_path, capsys):
    assert run(["profile", str(model("convs")), "-o", str(tmp_path / "t"), "--cycles", "2", "--dry"]) == 2
    assert "--cycles needs a run that computes" in capsys.readouterr().err


def test_the_python_runtime_has_no_cycles(model, tmp_path, capsys):
    arguments = ["profile", str(model("convs")), "-o", str(tmp_path / "t"), "--cycles", "2", "--runtime", "python"]
    assert run(arguments) == 2
    assert "--cycles is an option of the native runtime" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("held", "grows"),
    [
        ([1, 2, 3, 4], True),
        ([0, 1], True),
        ([1, 1, 1, 1], False),
        ([0, 1, 1, 1], False),
        ([1, 2, 1, 2], False),
        ([2, 4, 4, 6, 8], True),
        ([3, 2, 1], False),
    ],
)
def test_a_leak_is_what_never_shrinks_and_mostly_grows(held, grows):
    assert _grows(held) is grows
