from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from etmem.trace.model import ModelPasses
from etmem.trace.native import LIBRARY, NativePasses
from etmem.trace.passes import Passes

AGENT = Path(__file__).parents[2] / "native" / "agent"


@pytest.fixture(scope="session")
def native_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reading passes alone, compiled as their header promises that they can be."""
    folder = tmp_path_factory.mktemp("native")
    flags = ("-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror", "-fno-exceptions", "-fno-rtti", "-shared", "-fPIC")
    sources = (str(AGENT / name) for name in ("match.cpp", "read_events.cpp", "timeline.cpp"))
    subprocess.run(["g++", *flags, *sources, "-o", str(folder / LIBRARY)], check=True)
    return folder


@pytest.fixture(params=["native", "model"])
def passes(request: pytest.FixtureRequest, native_folder: Path) -> Passes:
    return NativePasses(native_folder / LIBRARY) if request.param == "native" else ModelPasses()


@pytest.fixture(autouse=True)
def _use_native(monkeypatch: pytest.MonkeyPatch, native_folder: Path) -> None:
    monkeypatch.setenv("ETMEM_NATIVE_DIR", str(native_folder))
