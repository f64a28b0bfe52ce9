"""``etmem doctor`` on this machine, and on one where things are missing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

SRC = Path(__file__).parents[2] / "src"


def doctor(*arguments, **variables):
    done = subprocess.run(
        [sys.executable, "-m", "etmem", "doctor", "--json", "-", *arguments],
        capture_output=True, text=True, timeout=600, check=False,
        env={**os.environ, "PYTHONPATH": str(SRC), **variables},
    )  # fmt: skip
    assert done.stderr == ""
    return done.returncode, {check["name"]: check for check in json.loads(done.stdout)}


def test_everything_that_a_capture_needs_is_here():
    code, checks = doctor()
    assert code == 0
    for name in ("platform", "compiler", "agent", "preload", "executorch", "hooks", "runner", "XNNPACK"):
        assert checks[name]["state"] == "ok", checks[name]
    assert "C++ SDK" in checks["executorch"]["detail"]
    assert all(check["hint"] for check in checks.values() if check["state"] != "ok")


def test_a_folder_without_executorch(tmp_path):
    code, checks = doctor("--executorch", str(tmp_path))
    assert code == 1
    assert checks["executorch"]["state"] == "missing"
    assert checks["executorch"]["hint"]
    assert checks["agent"]["state"] == "ok"
    assert "hooks" not in checks


def test_no_compiler_and_nothing_built(tmp_path):
    code, checks = doctor(PATH=str(tmp_path), CXX="", XDG_CACHE_HOME=str(tmp_path), ETMEM_CACHE=str(tmp_path))
    assert code == 1
    assert checks["compiler"]["state"] == "less"
    assert checks["hooks"]["state"] == "missing"
    assert "compiler" in checks["hooks"]["detail"]


def test_a_broken_openvino_path(tmp_path):
    _, checks = doctor(OPENVINO_LIB_PATH=str(tmp_path / "no.so"))
    assert checks["OpenVINO"]["state"] == "less"
    assert "does not exist" in checks["OpenVINO"]["detail"]


def test_the_table_fits_eighty_columns():
    done = subprocess.run(
        [sys.executable, "-m", "etmem", "doctor"],
        capture_output=True, text=True, timeout=600, check=False, env={**os.environ, "PYTHONPATH": str(SRC)},
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert done.returncode == 0
    assert any(line.startswith("ok      preload") for line in lines)
    assert all(len(line) <= 80 for line in lines)


def test_an_untested_version_is_named() -> None:
    from dataclasses import replace

    from etmem.capture import doctor as doctor_
    from etmem.capture import executorch

    found = executorch.find()
    assert doctor_._tested(found).state == "ok"
    other = doctor_._tested(replace(found, version="1.9.0+cpu"))
    assert other.state == "less"
    assert "1.9.0 is untested" in other.detail
    assert other.hint
