"""The GitHub action: its files against GitHub's schemas, its scripts by a linter, and its steps run one by one."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.matrix.action_runner import GH, Runner

ROOT = Path(__file__).resolve().parents[2]
ACTION = ROOT / ".github/actions/memory"
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


@pytest.fixture(scope="module")
def models(tmp_path_factory, model) -> Path:
    folder = tmp_path_factory.mktemp("models")
    for branch, convs in (("base", "convs"), ("head", "convs_three_delegates")):
        (folder / branch).mkdir()
        shutil.copyfile(model(convs), folder / branch / "convs.pte")
    (folder / "budgets.toml").write_text('schema = "etmem.budget/1"\n[[limit]]\nwhat = "load"\nmax = "12 MiB"\n')
    return folder


@pytest.fixture(scope="module")
def base(models, tmp_path_factory) -> Path:
    """The artifact of a push to the base branch."""
    runner = Runner(ACTION, tmp_path_factory.mktemp("push") / "job", {"models": str(models / "base")})
    assert runner.run() == 0, runner.notices
    assert "no change" in runner.summary
    assert comments(runner) == [], "nobody to tell"
    return runner.folder / "artifacts" / "etmem-bundles"


def pull_request(folder: Path, models: Path, base: Path | None, **inputs: str) -> Runner:
    runner = Runner(ACTION, folder / "job", {"models": str(models / "head"), **inputs}, event="pull_request")
    if base is not None:
        shutil.copytree(base, runner.folder / "base")
    return runner


def comments(runner: Runner) -> list[str]:
    return [path.read_text() for path in sorted((runner.folder / "comments").glob("*"))]


@pytest.mark.parametrize("path", [*WORKFLOWS, ACTION / "action.yml"], ids=lambda path: path.name)
def test_files_are_what_github_reads(path):
    schema = "vendor.github-actions" if path.parent == ACTION else "vendor.github-workflows"
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_workflow_gives_the_action_only_inputs_that_it_has():
    inputs = yaml.safe_load((ACTION / "action.yml").read_text())["inputs"]
    required = {name for name, one in inputs.items() if one.get("required")}
    for path in WORKFLOWS:
        for job in yaml.safe_load(path.read_text())["jobs"].values():
            for step in job["steps"]:
                if step.get("uses") == "./.github/actions/memory":
                    assert required <= set(step["with"]) <= set(inputs)


def test_scripts_have_no_remarks_of_shellcheck():
    scripts = [GH.read_text().partition("\n")[2]]
    scripts += [
        step["run"] for step in yaml.safe_load((ACTION / "action.yml").read_text())["runs"]["steps"] if "run" in step
    ]
    for path in WORKFLOWS:
        for job in yaml.safe_load(path.read_text())["jobs"].values():
            scripts += [step["run"] for step in job["steps"] if "run" in step]
    assert len(scripts) >= 6
    for script in scripts:
        command = ["shellcheck", "--shell=bash", "-"]
        done = subprocess.run(command, input=script, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


def test_a_pull_request_gets_one_comment_that_later_runs_write_over(models, base, tmp_path):
    runner = pull_request(tmp_path, models, base)
    (runner.folder / "comments").mkdir()
    (runner.folder / "comments" / "1").write_text("of somebody else")
    assert runner.run() == 0, runner.notices
    other, mine = comments(runner)
    assert other == "of somebody else"
    assert mine.startswith("<!-- etmem: etmem-bundles -->\n## Memory: 1 changed\n")
    assert "**graph_break**" in mine
    assert runner.summary in mine
    (runner.folder / "comments" / "2").write_text("a later one of somebody else")
    assert runner.run() == 0, runner.notices
    assert len(comments(runner)) == 3


def test_without_a_run_of_the_base_branch_there_is_nothing_to_compare(models, tmp_path):
    runner = pull_request(tmp_path, models, None, comment="false")
    assert runner.run() == 0, runner.notices
    assert "::notice::no run of memory.yml on main" in runner.notices
    assert "## Memory: no change" in runner.summary
    assert comments(runner) == [], "none is wanted"


def test_over_budget_fails_the_job_after_it_was_told(models, base, tmp_path):
    runner = pull_request(tmp_path, models, base, budget=str(models / "budgets.toml"))
    assert runner.run() == 3
    assert "**over budget**" in comments(runner)[0]
    assert (runner.folder / "artifacts" / "etmem-bundles" / "convs.zip").exists()


def test_a_token_that_may_not_write_leaves_the_page_in_the_summary(models, base, tmp_path):
    runner = pull_request(tmp_path, models, base)
    (runner.folder / "readonly").touch()
    assert runner.run() == 0
    assert "::notice::the page could not be posted" in runner.notices
    assert "1 changed" in runner.summary


def test_a_folder_without_programs_fails(models, base, tmp_path):
    (tmp_path / "none").mkdir()
    runner = pull_request(tmp_path, models, base)
    runner.inputs["models"] = str(tmp_path / "none")
    assert runner.run() == 1
    assert "no .pte file" in runner.notices
