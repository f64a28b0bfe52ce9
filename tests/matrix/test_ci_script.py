"""The script of the GitHub action, run on two of the cases as the action runs it."""

from __future__ import annotations

import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from etmem.cli.main import run

ACTION = Path(__file__).resolve().parents[2] / ".github/actions/memory"


def compare(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ACTION / "compare.py", *arguments]
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def branches(tmp_path_factory, model):
    """Models of a base branch, and of a head on which convs has become three delegates, in folders; base's bundles."""
    folder = tmp_path_factory.mktemp("branches")
    for branch, convs in (("base", "convs"), ("head", "convs_three_delegates")):
        (folder / branch / "vision").mkdir(parents=True)
        shutil.copyfile(model(convs), folder / branch / "vision/convs.pte")
    shutil.copyfile(model("kv_cache"), folder / "base" / "old.pte")
    done = compare(folder / "base", "--out", folder / "bundles")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("## Memory: no change\n")
    return folder


def test_a_growth_stands_in_the_table_with_its_reason(branches, tmp_path):
    page, bundles = tmp_path / "page.md", tmp_path / "bundles"
    done = compare(branches / "head", "--out", bundles, "--base", branches / "bundles", "--markdown", page)
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    assert text.startswith("## Memory: 1 changed, 1 gone\n")
    row = next(line for line in text.splitlines() if line.startswith("| `vision__convs`"))
    assert re.search(r"9\.2. MiB → \*\*16\.3. MiB\*\* \(\+7,\d{3},\d{3} B, \+77\.\d %\)", row)
    assert "**graph_break**" in text
    assert "| `old` | - | - | - | gone |" in text
    assert run(["verify", str(bundles / "vision__convs.zip")]) == 0


def test_equal_models_have_no_details(branches, tmp_path):
    shutil.copytree(branches / "base", tmp_path / "models", dirs_exist_ok=True)
    done = compare(tmp_path / "models", "--out", tmp_path / "bundles", "--base", branches / "bundles")
    assert done.returncode == 0
    assert done.stdout.startswith("## Memory: no change\n")
    assert "<details>" not in done.stdout
    assert done.stdout.count("| same |") == 2


def test_budgets_and_failures_set_the_exit_code(branches, tmp_path):
    budget = tmp_path / "budgets.toml"
    budget.write_text('schema = "etmem.budget/1"\n[[limit]]\nwhat = "load"\nmax = "12 MiB"\n')
    done = compare(branches / "head", "--out", tmp_path / "bundles", "--budget", budget)
    assert done.returncode == 3
    assert "**over budget**" in done.stdout
    (tmp_path / "models").mkdir()
    (tmp_path / "models/broken.pte").write_bytes(b"no program")
    done = compare(tmp_path / "models", "--out", tmp_path / "bundles", "--base", branches / "bundles")
    assert done.returncode == 1
    assert "| `broken` | - | - | - | failed |" in done.stdout
    (tmp_path / "empty").mkdir()
    assert compare(tmp_path / "empty", "--out", tmp_path / "bundles").returncode == 1


def test_options_reach_the_profile(branches, tmp_path):
    done = compare(
        *(branches / "head", "--out", tmp_path / "bundles", "--base", branches / "bundles"),
        "--profile-options=--load-mode file --iterations 3",
    )
    assert done.returncode == 0
    assert "changed, not alike" in done.stdout
    assert "loader" in done.stdout


def test_a_page_stays_below_what_a_comment_may_hold():
    script = runpy.run_path(str(ACTION / "compare.py"))
    rows = [script["Row"](f"model_{n}", ("1", "2", "3"), "changed", "x" * 20_000) for n in range(6)]
    page = script["page"](rows)
    assert len(page) < 65_536
    assert page.count("<details>") == page.count("</details>") == 2
    assert "Of 4 more there is no room here" in page
    assert page.count("| `model_") == 6


def test_the_action_uses_options_that_the_script_has():
    text = (ACTION / "action.yml").read_text()
    help_text = compare("--help").stdout
    used = set(re.findall(r"(--(?:out|base|budget|markdown|profile-options))\b", text))
    assert used == {"--out", "--base", "--budget", "--markdown", "--profile-options"}
    assert all(option in help_text for option in used)
