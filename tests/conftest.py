"""Fixtures that every test can use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.models.registry import model_path


@pytest.fixture(scope="session")
def model() -> Callable[[str], Path]:
    """``model("convs")``: the path of a test model, exported on first use and kept in the cache."""
    return model_path
