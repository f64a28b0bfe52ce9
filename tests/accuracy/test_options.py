"""Options that change where memory goes, each with its known effect."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from etmem.model.codec import from_data
from etmem.model.summary import SCHEMA, Moment, Summary
from tests.accuracy.captures import (
    MIB,
    XNNPACK,
    baseline_rss,
    blocks,
    category_bytes,
    etmem,
    owner_bytes,
    peak_rss,
    phases,
    profile,
)
from tests.accuracy.cases import CASES
from tests.models.registry import model_path

WEIGHTS = 4 * (2048 * 2048 + 2048) * 4
"""Bytes of the mlp's weights and biases."""


def total(moment: Moment) -> int:
    return moment.private_bytes + moment.file_bytes


def test_weight_cache_packs_once() -> None:
    """GIVEN two methods with the same weights WHEN the weight cache is on THEN they are packed once."""
    case = CASES["mlp_two_methods"]
    facts = case.facts["with_weight_cache"]
    summary = profile(case.name, *case.shapes, *facts["options"])
    base = baseline_rss(summary)
    last = [phase.rss for phase in phases(summary, "inference")][-1]
    assert last is not None
    found = {"load": peak_rss(summary, "program_load", "method_load") - base, "steady": last.end_bytes - base}
    for what, (mib, tolerance) in facts["over_baseline_mib"].items():
        assert found[what] / MIB == pytest.approx(mib, abs=tolerance), what
    assert summary.peaks.steady is not None
    assert category_bytes(summary.peaks.steady.moment, XNNPACK, "packed_weights") == pytest.approx(WEIGHTS, rel=0.01)
    assert "packed_twice" not in {finding.code for finding in summary.findings}
    assert any(delegate.shared_with for delegate in summary.delegates)


def test_preset_android_turns_the_weight_cache_on() -> None:
    summary = profile("mlp_two_methods", *CASES["mlp_two_methods"].shapes, "--preset", "android")
    assert summary.peaks.steady is not None
    assert category_bytes(summary.peaks.steady.moment, XNNPACK, "packed_weights") == pytest.approx(WEIGHTS, rel=0.01)


def test_without_workspace_sharing_each_delegate_has_its_own() -> None:
    case = CASES["convs_three_delegates"]
    facts = case.facts["without_workspace_sharing"]
    summary = profile(case.name, *case.shapes, *facts["options"])
    mib, tolerance = facts["over_baseline_mib"]["overall"]
    peak = peak_rss(summary, "program_load", "method_load", "inference") - baseline_rss(summary)
    assert peak / MIB == pytest.approx(mib, abs=tolerance)
    workspaces = [
        block for block in summary.largest_blocks if block.category == "workspace" and block.at == "inference"
    ]
    large = [block for block in workspaces if block.requested_bytes > MIB]
    assert sum(block.count for block in large) == 3
    assert [delegate.shared_with for delegate in summary.delegates] == [(), (), ()]


@pytest.mark.parametrize(("mode", "workspaces"), [("0", 3), ("1", 1), ("2", 1)])
def test_number_of_workspaces(mode: str, workspaces: int) -> None:
    """Sharing per model keys on the temp allocator's address: a decorator per load would break it."""
    case = CASES["convs_three_delegates"]
    summary = profile(case.name, *case.shapes, "--backend-option", f"XnnpackBackend:workspace_sharing_mode={mode}")
    large = [n for (kind, _, size), n in blocks(summary, "inference").items() if kind == "workspace" and size > MIB]
    assert sum(large) == workspaces


def test_a_buffers_original_is_never_freed() -> None:
    """GIVEN a program in a buffer of the caller's THEN its weights stay beside the packed ones."""
    case = CASES["mlp"]
    mapped, buffered = (profile("mlp", *case.shapes, "--load-mode", mode) for mode in ("mmap", "buffer"))
    assert mapped.peaks.steady is not None
    assert buffered.peaks.steady is not None
    kept = total(buffered.peaks.steady.moment) - total(mapped.peaks.steady.moment)
    assert kept == pytest.approx(WEIGHTS, rel=0.01)
    assert "original_kept" in {finding.code for finding in buffered.findings}
    assert {delegate.blob_released for delegate in buffered.delegates} == {"never"}
    assert {delegate.blob_released for delegate in mapped.delegates} == {"init"}


def test_file_and_mmap_loaders_take_the_same_in_another_kind() -> None:
    """GIVEN 64 MiB of constants THEN mapped they are file-backed, read they are private, and the sum is the same."""
    case = CASES["mlp_portable"]
    steady = {}
    for mode in ("mmap", "file"):
        peak = profile("mlp_portable", *case.shapes, "--load-mode", mode).peaks.steady
        assert peak is not None
        steady[mode] = peak.moment
    assert steady["mmap"].file_bytes == pytest.approx(WEIGHTS, rel=0.01)
    assert steady["file"].file_bytes == 0
    assert total(steady["mmap"]) == pytest.approx(total(steady["file"]), abs=64 * 1024)
    assert steady["file"].private_bytes - steady["mmap"].private_bytes == pytest.approx(WEIGHTS, rel=0.01)


def test_mlock_makes_the_mapping_resident() -> None:
    case = CASES["mlp_portable"]
    summary = profile("mlp_portable", *case.shapes, "--load-mode", "mlock")
    assert summary.target.loader == "mlock"
    load = next(phase.rss for phase in phases(summary, "program_load"))
    assert load is not None
    if "memlock_limited" not in {issue.code for issue in summary.issues}:
        assert load.end_bytes - load.start_bytes >= 60 * MIB


def test_shared_arenas_keep_the_largest() -> None:
    """GIVEN two methods WHEN they share arenas THEN planned memory is the larger method's."""
    case = CASES["mlp_two_methods"]
    summary = profile(case.name, *case.shapes, "--share-arenas")
    assert summary.peaks.inference is not None
    planned = category_bytes(summary.peaks.inference.moment, "executorch", "planned_memory")
    assert planned == max(case.facts["planned"].values())


def test_the_callers_tensors_are_the_hosts() -> None:
    """GIVEN an input of 768 KiB THEN it is host/inputs_outputs, beside the totals and not in them."""
    summary = profile("convs", *CASES["convs"].shapes)
    assert summary.peaks.inference is not None
    moment = summary.peaks.inference.moment
    given = category_bytes(moment, "host", "inputs_outputs")
    assert given >= 3 * 256 * 256 * 4
    assert owner_bytes(moment, "executorch") + owner_bytes(moment, XNNPACK) == total(moment)


def test_json_to_standard_output(tmp_path: Path) -> None:
    ran = etmem("profile", model_path("convs"), "--json", "-", cwd=tmp_path)
    assert ran.code == 0, ran.err
    assert from_data(Summary, json.loads(ran.out)).schema == SCHEMA
