"""The estimate that ends a profile."""

from __future__ import annotations

from dataclasses import replace

from etmem.capture.options import ProfileOptions, Runtime
from etmem.cli.estimate import estimate_line
from etmem.planning import PlanOptions, plan
from etmem.report.plan_beside import beside_line
from tests.report import samples


def test_the_line_says_what_was_estimated_and_how_far_off_it_is(model):
    found = plan(model("mlp"), PlanOptions(cpu="avx512"))
    line = beside_line(samples.mlp(), found)
    assert line.startswith("estimate 128.")
    assert "MiB at load (+0." in line or "MiB at load (-0." in line
    assert len(line) <= 80


def test_another_target_s_estimate_stays_away(model):
    found = plan(model("mlp"), PlanOptions(cpu="avx2"))
    assert beside_line(samples.mlp(), found) == ""
    summary = samples.mlp()
    unknown = plan(model("unknown_backend"), PlanOptions(cpu="avx512"))
    assert beside_line(summary, unknown) == ""


def test_runs_that_a_plan_does_not_describe(model, tmp_path):
    summary = samples.mlp()
    options = ProfileOptions(program=model("mlp"))
    assert estimate_line(replace(options, runtime=Runtime.PYTHON), summary) == ""
    assert estimate_line(replace(options, share_arenas=True), summary) == ""
    assert estimate_line(replace(options, program=tmp_path / "none.pte"), summary) == ""
