"""Verdicts on summaries built by hand: figures, what is lacking, baselines, and the three formats."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from etmem.analysis.budget import check
from etmem.analysis.budget_model import Status
from etmem.analysis.budget_parse import parse_budget
from etmem.model.errors import InputError
from etmem.model.summary import InputSpec, Peaks
from etmem.report import verdict as text
from etmem.report.junit import to_junit
from tests.report import samples
from tests.report.samples import MIB

XNN = "delegate:XnnpackBackend"
RUNNING = 4 * 16_785_408 + 24_000 + 8_000 + 16_448 + 577
LOADING = 4 * 16_785_408 + 41_000 + 16_448 + 577
FILE = 67_141_632


def judge(*lines: str, runs=None, baselines=None):
    budget = parse_budget('schema = "etmem.budget/1"\n[[limit]]\n' + "\n".join(lines))
    (outcome,) = check(budget, runs if runs is not None else [samples.mlp()], baselines or {}).outcomes
    return outcome


@pytest.mark.parametrize(
    ("lines", "value"),
    [
        (['what = "load"'], LOADING),
        (['what = "load"', 'measure = "live"'], LOADING + FILE),
        (['what = "inference"'], RUNNING),
        (['what = "first_inference"', 'method = "forward"'], RUNNING),
        (['what = "later_inference"'], RUNNING),
        (['what = "steady"'], RUNNING),
        (['what = "overall"', 'measure = "live"'], LOADING + FILE),
        (['what = "overall"'], LOADING),
        (['what = "inference"', f'owner = "{XNN}"'], 4 * 16_785_408 + 32_000),
        (['what = "inference"', f'owner = "{XNN}"', 'category = "workspace"'], 24_000),
        (['what = "load"', f'owner = "{XNN}"', 'category = "original_weights"', 'measure = "live"'], FILE),
        (['what = "load"', f'owner = "{XNN}"', 'category = "original_weights"'], 0),
        (['what = "inference"', 'category = "planned_memory"'], 16_448),
        (['what = "inference"', 'owner = "host"', 'category = "inputs_outputs"'], 16_384),
        (['what = "load"', 'measure = "allocations"'], 84),
        (['what = "first_inference"', 'measure = "allocations"'], 42),
        (['what = "later_inference"', 'measure = "allocations"'], 0),
        (['what = "later_inference"', 'measure = "allocations"', f'owner = "{XNN}"'], 0),
        (['what = "inference"', 'measure = "allocated"'], RUNNING),
        (['what = "load"', 'measure = "rss"', "tolerance = 4194304"], round(133.7 * MIB) - 5 * MIB),
        (['what = "steady"', 'measure = "rss"', "tolerance = 4194304"], round(70.1 * MIB) - 5 * MIB),
    ],
)
def test_every_figure_is_exact_to_the_byte(lines, value):
    assert judge(*lines, f"max = {value}").value == value
    assert judge(*lines, f"max = {value}").status is Status.OK
    slack = 4 * MIB if 'measure = "rss"' in lines else 0
    if value > slack:
        over = judge(*lines, f"max = {value - slack - 1}")
        assert over.status is Status.OVER
        assert "1 over" in over.message or "1 B over" in over.message


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (['what = "load"', 'owner = "delegate:CoreMLBackend"'], "no delegate:CoreMLBackend"),
        (['what = "load"', 'method = "prefill"'], "no method 'prefill'"),
        (['what = "steady"', 'category = "planned_memory"', 'method = "x"'], "no method"),
    ],
)
def test_what_the_target_does_not_have_is_an_error(lines, why):
    found = judge(*lines, 'max = "10 GiB"')
    assert found.status is Status.ERROR
    assert why in found.message


def test_a_single_inference_has_no_later_one():
    base = samples.mlp()
    single = replace(base, phases=base.phases[:3])
    assert judge('what = "later_inference"', 'max = "1 GiB"', runs=[single]).status is Status.ERROR
    assert judge('what = "first_inference"', 'max = "1 GiB"', runs=[single]).status is Status.OK


def test_a_run_that_was_not_seen_is_an_error_not_a_pass():
    limit = ('what = "overall"', 'max = "10 GiB"')
    empty = replace(samples.mlp(), phases=(), peaks=Peaks(None, None, None))
    for runs in ([], [empty], [samples.failed()], [samples.withheld()], [samples.mlp(), samples.failed()]):
        assert judge(*limit, runs=runs).status is Status.ERROR


def test_a_dry_run_has_no_rss():
    found = judge('what = "load"', 'measure = "rss"', 'max = "9 GiB"', 'tolerance = "4 MiB"', runs=[samples.dry()])
    assert found.status is Status.ERROR
    assert "dry" in found.message


def test_the_largest_of_the_repeats_counts():
    runs = [samples.convs(), samples.convs_three_delegates(), samples.convs()]
    found = judge('what = "load"', 'category = "planned_memory"', 'max = "10 MiB"', runs=runs)
    assert (found.value, found.repeats, found.status) == (16_777_280, 3, Status.OVER)


def test_a_baseline_and_its_tolerance():
    baselines = {"b": samples.convs()}
    limit = ('what = "load"', 'category = "planned_memory"', 'baseline = "b"')
    grown = samples._convs(1, 9_175_104 + 4096, 195_072, ())
    assert judge(*limit, runs=[samples.convs()], baselines=baselines).status is Status.OK
    over = judge(*limit, runs=[grown], baselines=baselines)
    assert (over.status, over.value, over.allowed, over.base) == (Status.OVER, 9_179_200, 9_175_104, 9_175_104)
    assert judge(*limit, 'tolerance = "4 KiB"', runs=[grown], baselines=baselines).status is Status.OK
    assert judge(*limit, 'tolerance = "0.01 %"', runs=[grown], baselines=baselines).status is Status.OVER
    assert judge(*limit, 'tolerance = "1%"', runs=[grown], baselines=baselines).status is Status.OK


def test_a_baseline_that_is_missing_or_of_another_machine_is_an_error():
    limit = ('what = "load"', 'baseline = "b"', 'tolerance = "50 %"')
    assert "there is no baseline b" in judge(*limit).message
    base = samples.mlp()
    for change in (
        {"isa": "avx2"},
        {"loader": "file"},
        {"inputs": (InputSpec("forward", 0, "float32", (2, 2048)),)},
        {"backend_options": ("XnnpackBackend:weight_cache_enabled=true",)},
    ):
        other = replace(base, target=replace(base.target, **change))
        found = judge(*limit, baselines={"b": other})
        assert found.status is Status.ERROR
        assert "run otherwise" in found.message
    newer = replace(base, target=replace(base.target, executorch="1.4.1"))
    assert judge(*limit, baselines={"b": newer}).status is Status.OK


def test_rss_against_a_baseline_needs_four_mebibytes_too():
    limit = ('what = "load"', 'measure = "rss"', 'baseline = "b"')
    with pytest.raises(InputError, match="flaps"):
        judge(*limit, 'tolerance = "1 %"', baselines={"b": samples.mlp()})
    assert judge(*limit, 'tolerance = "5 %"', baselines={"b": samples.mlp()}).status is Status.OK


def verdict():
    limits = (
        '[[limit]]\nwhat = "load"\nmax = "200 MiB"\n'
        '[[limit]]\nwhat = "load"\nmax = "1 MiB"\nname = "a|b <c>"\n'
        '[[limit]]\nwhat = "load"\nmethod = "x\\u001b"\nmax = 1\n'
    )
    return check(parse_budget('schema = "etmem.budget/1"\n' + limits), [samples.mlp()], {}, target="mlp.etmem")


def test_one_error_outweighs_and_no_limit_is_no_pass():
    assert verdict().status is Status.ERROR
    assert replace(verdict(), outcomes=verdict().outcomes[:2]).status is Status.OVER
    assert replace(verdict(), outcomes=verdict().outcomes[:1]).status is Status.OK
    assert replace(verdict(), outcomes=()).status is Status.ERROR


def test_the_text_shows_what_the_figure_is_made_of():
    shown = text.render(verdict())
    assert shown.startswith("NO VERDICT  mlp.etmem  1 ok, 1 over, 1 error\n")
    assert "delegate:XnnpackBackend packed_weights" in shown
    assert f"{4 * 16_785_408:,}" in shown
    assert shown.isascii()
    assert "\x1b" not in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_json_and_markdown():
    data = json.loads(text.to_json(verdict()))
    assert (data["schema"], data["status"]) == ("etmem.verdict/1", "error")
    assert [outcome["status"] for outcome in data["outcomes"]] == ["ok", "over", "error"]
    assert data["outcomes"][1]["breakdown"][0] == {"what": f"{XNN} packed_weights", "bytes": 4 * 16_785_408}
    lines = text.to_markdown(verdict()).splitlines()
    assert {line.replace("\\|", "").count("|") for line in lines[2:]} == {6}


def test_junit_has_a_case_per_limit():
    suites = ET.fromstring(to_junit((verdict(), verdict())))
    assert (suites.get("tests"), suites.get("failures"), suites.get("errors")) == ("6", "2", "2")
    cases = suites.findall("testsuite")[0].findall("testcase")
    assert [[child.tag for child in case] for case in cases] == [["system-out"], ["failure"], ["error"]]
    assert "packed_weights" in (cases[1][0].text or "")
