"""OpenVINO, a delegate with threads and libraries of its own; alone and beside XNNPACK."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from etmem.model.summary import Summary
from tests.accuracy.captures import MIB, XNNPACK, baseline_rss, owner_bytes, phases, profile

OPENVINO = "delegate:OpenvinoBackend"


@pytest.fixture(scope="module")
def openvino_library(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What ExecuTorch's OpenVINO backend opens: the C library of the installed package."""
    spec = importlib.util.find_spec("openvino")
    assert spec is not None
    assert spec.submodule_search_locations
    libraries = Path(spec.submodule_search_locations[0]) / "libs"
    return str(next(iter(sorted(libraries.glob("libopenvino_c.so*")))))


@pytest.fixture
def with_library(openvino_library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENVINO_LIB_PATH", openvino_library)


@pytest.fixture
def summary(with_library: None) -> Summary:
    return profile("openvino_cnn.pte", "--iterations", "5")


def test_init_and_execute_are_the_delegates(summary: Summary) -> None:
    """GIVEN 50,000 allocations of an init THEN they are OpenVINO's, those of its own threads included."""
    assert [(delegate.backend, delegate.instance) for delegate in summary.delegates] == [("OpenvinoBackend", 0)]
    load = next(phases(summary, "method_load"))
    assert load.allocations > 20_000
    assert owner_bytes(load.live_end, OPENVINO) > MIB
    assert summary.delegates[0].init_peak_bytes >= summary.delegates[0].live_after_init_bytes > MIB


def test_every_byte_has_an_owner(summary: Summary) -> None:
    allocated = sum(phase.allocated_bytes for phase in summary.phases)
    assert sum(phase.unowned_bytes for phase in summary.phases) <= 0.001 * allocated


def test_its_libraries_have_a_line(summary: Summary) -> None:
    """Tens of MB of mapped code: on a line of their own in the balance."""
    at_load = next(balance for balance in summary.balances if balance.at == "load")
    libraries = [line for line in at_load.lines if "librar" in line.line.lower() and "openvino" in line.line.lower()]
    assert len(libraries) == 1
    assert libraries[0].bytes > 10 * MIB


def test_balance(summary: Summary) -> None:
    base = baseline_rss(summary)
    for balance in summary.balances:
        assert balance.rss_bytes == sum(line.bytes for line in balance.lines) + balance.unaccounted_bytes
        assert abs(balance.unaccounted_bytes) <= max(0.05 * (balance.rss_bytes - base), 256 * 1024), balance.at


def test_two_backends_in_one_program(with_library: None) -> None:
    summary = profile("openvino_and_xnnpack.pte")
    assert {(delegate.method, delegate.backend) for delegate in summary.delegates} == {
        ("see", "OpenvinoBackend"),
        ("think", "XnnpackBackend"),
    }
    assert summary.peaks.steady is not None
    assert owner_bytes(summary.peaks.steady.moment, OPENVINO) > MIB
    assert owner_bytes(summary.peaks.steady.moment, XNNPACK) > 256 * 256 * 4


def test_dry_is_refused_by_name(with_library: None) -> None:
    """GIVEN a delegate that cannot be dry THEN an issue says which."""
    summary = profile("openvino_cnn.pte", "--dry")
    unsupported = [issue for issue in summary.issues if issue.code == "dry_unsupported"]
    assert len(unsupported) == 1
    assert "OpenvinoBackend" in unsupported[0].message
