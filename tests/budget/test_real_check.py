"""``etmem check`` on real runs: exit codes, baselines, repeats."""

from __future__ import annotations

import json

import pytest

import etmem
from etmem.cli.main import run
from etmem.report.json import from_json


@pytest.fixture(scope="module")
def traces(tmp_path_factory, model):
    folder = tmp_path_factory.mktemp("runs")
    for name in ("convs", "convs_three_delegates"):
        profile = etmem.profile(model(name), output=folder / f"{name}.etmem")
        (folder / f"{name}.json").write_text(profile.to_json())
    return folder


def budget(folder, *limits: str, repeats: int = 1):
    path = folder / "budgets.toml"
    tables = "\n".join(f"[[limit]]\n{limit}\n" for limit in limits)
    path.write_text(f'schema = "etmem.budget/1"\nrepeats = {repeats}\n{tables}')
    return str(path)


def test_exit_codes(traces, tmp_path, capsys):
    trace = str(traces / "convs.etmem")
    loose = 'what = "inference"\nmax = "60 MiB"'
    tight = 'what = "inference"\nmax = "20 MiB"'
    lacking = 'what = "inference"\nmethod = "prefill"\nmax = "20 MiB"'
    assert run(["check", trace, "-b", budget(tmp_path, loose)]) == 0
    assert "WITHIN BUDGET" in capsys.readouterr().out
    assert run(["check", trace, "-b", budget(tmp_path, loose, tight)]) == 3
    assert "OVER BUDGET" in capsys.readouterr().out
    assert run(["check", trace, "-b", budget(tmp_path, loose, lacking)]) == 1
    assert run(["check", trace, "-b", str(tmp_path / "none.toml")]) == 1
    assert "cannot read" in capsys.readouterr().err


@pytest.mark.parametrize("baseline", ["base.zip", "base", "base.json"])
def test_a_baseline_is_written_and_compared_with(traces, tmp_path, capsys, baseline):
    path = budget(tmp_path, f'what = "overall"\nmeasure = "live"\nbaseline = "{baseline}"\ntolerance = "1 %"')
    one, other = (str(traces / f"{name}.etmem") for name in ("convs", "convs_three_delegates"))
    assert run(["check", one, "-b", path]) == 1
    assert "write it with etmem check" in " ".join(capsys.readouterr().out.split())
    assert run(["check", one, "-b", path, "--update"]) == 0
    assert run(["check", one, "-b", path]) == 0
    assert run(["check", other, "-b", path, "--json", str(tmp_path / "v.json")]) == 3
    (outcome,) = json.loads((tmp_path / "v.json").read_text())["outcomes"]
    assert outcome["value"] > outcome["allowed"] > outcome["base"]


def test_a_program_is_run_as_often_as_the_budget_says(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    summary = etmem.profile(model("kv_cache"), output=tmp_path / "x.etmem").summary
    path = budget(
        tmp_path, f'what = "inference"\nmax = {summary.peaks.inference.moment.private_bytes}',
        'what = "later_inference"\nmeasure = "allocations"\nmax = 0', repeats=3,
    )  # fmt: skip
    verdict = tmp_path / "v.json"
    assert run(["check", str(model("kv_cache")), "-b", path, "--json", str(verdict)]) == 0
    assert [outcome["repeats"] for outcome in json.loads(verdict.read_text())["outcomes"]] == [3, 3]
    assert not list(tmp_path.glob("kv_cache*"))


def test_several_targets_and_junit_on_stdout(traces, tmp_path, capsys):
    path = budget(tmp_path, 'what = "load"\nmax = "12 MiB"')
    names = [str(traces / name) for name in ("convs.json", "convs_three_delegates.json")]
    assert run(["check", *names, "-b", path, "--junit", "-"]) == 3
    out = capsys.readouterr().out
    assert out.startswith("<?xml")
    assert 'tests="2" failures="1" errors="0"' in out


def test_update_needs_a_baseline_and_something_to_make_it_of(traces, tmp_path, capsys):
    assert run(["check", str(traces / "convs.json"), "-b", budget(tmp_path, 'what = "load"\nmax = 1'), "--update"]) == 2
    path = budget(tmp_path, 'what = "load"\nbaseline = "b.zip"')
    assert run(["check", str(traces / "convs.json"), "-b", path, "--update"]) == 2
    assert "cannot be made of it" in capsys.readouterr().err


def test_a_baseline_bundle_that_was_changed_is_refused(traces, tmp_path, capsys):
    path = budget(tmp_path, 'what = "load"\nbaseline = "b"')
    trace = str(traces / "convs.etmem")
    assert run(["check", trace, "-b", path, "--update"]) == 0
    summary = tmp_path / "b" / "summary.json"
    changed = from_json(summary.read_text())
    summary.write_text(summary.read_text().replace("9175104", "9175105"))
    assert changed.peaks.load is not None
    assert run(["check", trace, "-b", path]) == 1
    assert "has been changed" in capsys.readouterr().err
