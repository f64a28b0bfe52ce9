"""A user's own description of a delegate: when recording, when reading an older trace, and in a dry run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from etmem.api import load, view
from etmem.model.summary import Summary
from etmem.model.words import IssueCode
from etmem.trace.reader import read
from tests.accuracy.captures import category_bytes, etmem
from tests.accuracy.delegate.accounts import OWNER
from tests.accuracy.delegate.building import build_delegate
from tests.accuracy.test_allocations import DESCRIPTION
from tests.models.allocating import BACKEND, PLANS
from tests.models.registry import model_path

WEIGHTS = next(step.bytes for step in PLANS["heap"] if step.route == "malloc")
DRY = DESCRIPTION.replace("[dry]", '[dry]\nsymbol = "compute_nothing"')


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("described")
    build_delegate(folder)
    (folder / "plain.toml").write_text(DESCRIPTION.replace("packed_weights", "operator_buffers"))
    (folder / "better.toml").write_text(DESCRIPTION)
    (folder / "dry.toml").write_text(DRY)
    (folder / "undry.toml").write_text(DRY.replace("compute_nothing", "compute_something"))
    return folder


def profiled(folder: Path, name: str, *options: object, **variables: str) -> Path:
    trace = folder / f"{name}.etmem"
    library = folder / "liballocating.so"
    model = model_path("allocating")
    ran = etmem("profile", model, "-m", "heap", "--library", library, "-o", trace, *options, variables=variables)
    assert ran.code == 0, ran.out + ran.err
    return trace


def weights(summary: Summary, category: str = "packed_weights") -> int:
    assert summary.peaks.load is not None
    return category_bytes(summary.peaks.load.moment, OWNER, category)


def codes(summary: Summary) -> list[IssueCode]:
    return [issue.code for issue in summary.issues]


def test_an_old_trace_is_read_with_a_better_description(folder: Path) -> None:
    """GIVEN a trace recorded with a poor description WHEN it is read with a better one THEN its categories hold."""
    trace = profiled(folder, "old", "--describe", folder / "plain.toml")
    better = folder / "better.toml"
    poor = load(trace, describe=folder / "plain.toml").summary
    assert (weights(poor), weights(poor, "operator_buffers")) == (0, WEIGHTS)
    ran = etmem("report", trace, "--describe", better, "--json", folder / "better.json", "--csv", folder / "tables")
    assert ran.code == 0, ran.err
    load_peak = json.loads((folder / "better.json").read_text())["peaks"]["load"]["moment"]["owners"]
    held = next(owner for owner in load_peak if owner["owner"] == OWNER)["categories"]
    assert {part["category"]: part["private_bytes"] for part in held}["packed_weights"] == WEIGHTS
    assert any("packed_weights" in path.read_text() for path in (folder / "tables").iterdir())
    assert view(trace, describe=(better,)).summary == load(trace, describe=[better]).summary
    assert IssueCode.NO_DELEGATE_DESCRIPTION in codes(load(trace).summary)


def test_the_environment_serves_every_verb(folder: Path) -> None:
    """GIVEN a description in the environment WHEN profiling THEN stacks are recorded and the category is there."""
    trace = profiled(folder, "variable", ETMEM_DESCRIBE=str(folder / "better.toml"))
    assert any(read(trace).stacks.values())
    assert weights(load(trace, describe=folder / "better.toml").summary) == WEIGHTS


def test_a_dry_run_answers_what_the_description_names(folder: Path) -> None:
    """GIVEN a function to answer WHEN dry THEN it is answered, and where nothing calls it an issue says so."""
    dry = load(profiled(folder, "dry", "--dry", "--describe", folder / "dry.toml"), describe=folder / "dry.toml")
    assert ("dry.symbol", "compute_nothing") in read(dry.trace_path).notes
    assert IssueCode.DRY_UNSUPPORTED not in codes(dry.summary)
    assert weights(dry.summary) == WEIGHTS
    undry = folder / "undry.toml"
    missed = load(profiled(folder, "undry", "--dry", "--describe", undry), describe=undry).summary
    issue = next(issue for issue in missed.issues if issue.code is IssueCode.DRY_UNSUPPORTED)
    assert issue.detail == {"backend": BACKEND, "symbol": "compute_something"}


def test_a_wrong_description_stops_before_anything_runs(folder: Path) -> None:
    wrong = folder / "wrong.toml"
    wrong.write_text(DESCRIPTION.replace("packed_weights", "packed_wheights"))
    for verb, *arguments in (
        ("profile", model_path("allocating")),
        ("plan", model_path("allocating")),
        ("report", profiled(folder, "any")),
    ):
        ran = etmem(verb, *arguments, "--describe", wrong, cwd=folder)
        assert ran.code == 1
        first, hint = ran.err.splitlines()
        assert first.startswith(f"etmem: error: {wrong}: rules[0]: category has to be one of original_weights,")
        assert hint.startswith("hint: ")
    ran = etmem("run", "--describe", wrong, "--", "true", cwd=folder)
    assert (ran.code, len(ran.err.splitlines())) == (1, 2)


def test_the_plan_names_what_it_cannot_import(folder: Path) -> None:
    described = folder / "estimate.toml"
    described.write_text(DESCRIPTION.replace("[[rules]]", 'estimate = "not_installed.sizes:estimate"\n\n[[rules]]'))
    ran = etmem("plan", model_path("allocating"), "--describe", described)
    assert ran.code == 1
    assert "the estimate not_installed.sizes:estimate cannot be imported" in ran.err
