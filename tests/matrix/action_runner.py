"""Runs the steps of a composite action as a GitHub runner does, with a `gh` that keeps its state in files."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

GH = Path(__file__).with_name("gh.sh")
_EXPRESSION = re.compile(r"\$\{\{\s*([\w.-]+)\s*\}\}")
_CONDITION = re.compile(r"([\w.]+) == '([^']*)'(?: && |$)")


@dataclass
class Runner:
    """One job on one event. ``folder`` holds what GitHub would: comments, base bundles, artifacts, the summary."""

    action: Path
    folder: Path
    inputs: dict[str, str]
    event: str = "push"
    outputs: dict[str, str] = field(default_factory=dict)
    notices: str = ""

    def __post_init__(self) -> None:
        self.temp.mkdir(parents=True)
        (self.folder / "bin").mkdir()
        shutil.copy(GH, self.folder / "bin" / "gh")
        (self.folder / "bin" / "gh").chmod(0o755)

    @property
    def temp(self) -> Path:
        return self.folder / "temp"

    @property
    def summary(self) -> str:
        path = self.folder / "summary.md"
        return path.read_text() if path.exists() else ""

    def run(self) -> int:
        """The exit code of the first step that fails, else 0."""
        described = yaml.safe_load((self.action / "action.yml").read_text())
        for name, one in described["inputs"].items():
            if name not in self.inputs:
                assert not one.get("required")
                self.inputs[name] = str(self._filled(one["default"]))
        for step in described["runs"]["steps"]:
            code = self._step(step) if self._wanted(step.get("if")) else 0
            if code:
                return code
        return 0

    def _step(self, step: dict[str, Any]) -> int:
        if "uses" in step:
            assert step["uses"].startswith("actions/upload-artifact@")
            source = Path(self._filled(step["with"]["path"]))
            if not source.exists():
                assert step["with"]["if-no-files-found"] == "warn"
                return 0
            shutil.copytree(source, self.folder / "artifacts" / self._filled(step["with"]["name"]), dirs_exist_ok=True)
            return 0
        output = self.folder / "output"
        output.write_text("")
        variables = {name: self._filled(str(value)) for name, value in step.get("env", {}).items()}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            env={**os.environ, **self._machine(output), **variables},
            capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        self.notices += done.stdout + done.stderr
        lines = (line.partition("=") for line in output.read_text().splitlines())
        self.outputs.update({f"steps.{step.get('id')}.outputs.{name}": value for name, _, value in lines})
        return done.returncode

    def _machine(self, output: Path) -> dict[str, str]:
        return {
            "RUNNER_TEMP": str(self.temp),
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(self.folder / "summary.md"),
            "GH_STATE": str(self.folder),
            # setup-python's is the first.
            "PATH": f"{self.folder / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        }

    def _wanted(self, condition: str | None) -> bool:
        if condition is None:
            return True
        parts = _CONDITION.findall(condition)
        assert "".join(f"{name} == '{value}' && " for name, value in parts).removesuffix(" && ") == condition
        return all(self._value(name) == value for name, value in parts)

    def _filled(self, text: str) -> str:
        return _EXPRESSION.sub(lambda match: self._value(match[1]), text)

    def _value(self, name: str) -> str:
        known = {
            "github.event_name": self.event,
            "github.token": "a-token",
            "github.repository": "someone/models",
            "github.base_ref": "main",
            "github.action_path": str(self.action),
            "github.event.pull_request.number": "7",
            "runner.temp": str(self.temp),
            **{f"inputs.{key}": value for key, value in self.inputs.items()},
            **self.outputs,
        }
        return known[name]
