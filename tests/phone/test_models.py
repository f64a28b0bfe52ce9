"""Other models for a phone's CPU; and skipping the arithmetic against doing it."""

from __future__ import annotations

import pytest

from etmem.model.summary import Summary
from etmem.model.words import Severity
from tests.accuracy.captures import XNNPACK, category_bytes
from tests.phone.profiles import counted, profiled

SMALL: dict[str, dict[str, object]] = {
    "mlp": {"shapes": "0=1x2048"},
    "mlp_dynamic": {"shapes": "0=1x2048"},
    "mlp_two_methods": {"methods": "decode"},
    "kv_cache": {"shapes": ("0=1x1x1024", "1=1")},
    "quantized_xnnpack": {},
}


@pytest.mark.parametrize("name", SMALL)
def test_dry_counts_what_computing_counts(name: str) -> None:
    """GIVEN a model that is quick enough even in the emulator THEN skipping its arithmetic changes no count."""
    dry, computed = (profiled(name, "cortex-a76", dry=dry, **SMALL[name]) for dry in (True, False))
    assert not computed.target.dry
    assert counted(dry) == counted(computed)


def test_computing_in_the_emulator_says_nothing_of_pages() -> None:
    summary = profiled("kv_cache", "cortex-a76", dry=False, **SMALL["kv_cache"])
    assert summary.environment.emulator
    assert all(phase.rss is None for phase in summary.phases)
    assert not summary.balances
    assert not summary.high_waters
    assert not summary.issues


def clean(summary: Summary) -> bool:
    return not any(issue.severity is Severity.ERROR for issue in summary.issues) and not any(
        phase.failed for phase in summary.phases
    )


def test_a_language_model() -> None:
    """GIVEN the Llama-shaped decoder of four layers WHEN profiled for a phone THEN its weights are packed once."""
    here, phone = (profiled("llama", cpu) for cpu in ("host", "cortex-a76"))
    assert clean(here)
    assert clean(phone)
    assert here.peaks.inference is not None
    assert phone.peaks.inference is not None
    packed = [category_bytes(s.peaks.inference.moment, XNNPACK, "packed_weights") for s in (here, phone)]
    planned = [category_bytes(s.peaks.inference.moment, "executorch", "planned_memory") for s in (here, phone)]
    assert planned[0] == planned[1]
    assert packed[1] == pytest.approx(packed[0], rel=0.01)
    assert [d.blob_bytes for d in here.delegates] == [d.blob_bytes for d in phone.delegates]


@pytest.mark.parametrize("name", ["quantized_xnnpack", "quantized_portable"])
def test_a_quantized_model(name: str) -> None:
    here, phone = (profiled(name, cpu) for cpu in ("host", "cortex-a76"))
    assert clean(here)
    assert clean(phone)
    assert here.peaks.load is not None
    assert phone.peaks.load is not None
    assert [(a.name, a.bytes) for a in here.arenas if a.name.startswith("planned")] == [
        (a.name, a.bytes) for a in phone.arenas if a.name.startswith("planned")
    ]
    assert phone.peaks.load.moment.private_bytes > 0


def test_a_run_can_be_repeated() -> None:
    first, again = (profiled("kv_cache", "cortex-a53", **SMALL["kv_cache"], **turn) for turn in ({}, {"iterations": 2}))
    assert counted(first) == counted(again)
