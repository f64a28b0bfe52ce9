"""Small programs of every kind, exported once per version of their script and of ExecuTorch."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.models.registry import cache_base, only_one


@pytest.fixture(scope="session")
def small() -> Path:
    """The directory of the files that small_models.py exports."""
    script = Path(__file__).with_name("small_models.py")
    versions = "".join(version(package) for package in ("torch", "executorch"))
    digest = hashlib.sha256(script.read_bytes() + versions.encode()).hexdigest()[:16]
    target = cache_base() / f"small-{digest}"
    with only_one(target.parent, target.name):
        if not target.exists():
            with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
                made = Path(scratch) / "small"
                made.mkdir()
                command = [sys.executable, "-W", "ignore", str(script), str(made)]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                assert done.returncode == 0, done.stderr[-4000:]
                made.rename(target)
    return target
