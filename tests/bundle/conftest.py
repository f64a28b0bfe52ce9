"""One small trace, and its bundle."""

from __future__ import annotations

import pytest

import etmem
from etmem.bundle.writing import write_bundle


@pytest.fixture(scope="package")
def trace(tmp_path_factory, model):
    folder = tmp_path_factory.mktemp("trace")
    return etmem.profile(model("convs"), output=folder / "convs.etmem").trace_path


@pytest.fixture
def archive(trace, tmp_path):
    write_bundle(tmp_path / "convs.zip", trace)
    return tmp_path / "convs.zip"


@pytest.fixture
def folder(trace, tmp_path):
    write_bundle(tmp_path / "convs", trace)
    return tmp_path / "convs"
