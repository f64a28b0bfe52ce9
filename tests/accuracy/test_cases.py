"""The eight cases, to the byte: counted natively, without computing, and under Python."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest

from etmem.model.summary import Summary
from etmem.model.words import is_counted
from tests.accuracy.captures import (
    MIB,
    XNNPACK,
    baseline_rss,
    blocks,
    category_bytes,
    peak_rss,
    phases,
    profile,
    run_python,
)
from tests.accuracy.cases import CASES, NAMES, Case, indirection_sizes

WAYS = ("native", "dry", "python")


@pytest.fixture(params=[f"{name}-{way}" for name, way in product(NAMES, WAYS)], scope="module")
def captured(request: pytest.FixtureRequest) -> tuple[Case, str, Summary]:
    name, _, way = request.param.partition("-")
    case = CASES[name]
    if way == "python":
        return case, way, run_python(name, case.inputs)
    return case, way, profile(name, *case.shapes, *(["--dry"] if way == "dry" else []))


@pytest.fixture(params=NAMES, scope="module")
def native(request: pytest.FixtureRequest) -> tuple[Case, Summary]:
    case = CASES[request.param]
    return case, profile(case.name, *case.shapes)


@pytest.mark.parametrize("at", ["load", "inference"])
def test_blocks(captured: tuple[Case, str, Summary], at: str) -> None:
    """GIVEN a case WHEN profiled THEN the blocks of known size are there: so many, so large, from that phase."""
    case, _, summary = captured
    found = blocks(summary, at)
    known = {isa for block in case.facts["blocks"] for isa in block.get("by_isa", ())}
    if known and summary.target.isa not in known:
        buffers = Counter({key: n for key, n in found.items() if key[0] == "operator_buffers" and key[2] > MIB})
        assert {size for _, _, size in buffers} <= indirection_sizes()
        assert buffers.total() == (6 if at == "inference" else 0)
        return
    large = Counter({key: n for key, n in found.items() if key[2] > MIB})
    assert large == case.blocks(at, summary.target.isa)


def test_planned_memory(captured: tuple[Case, str, Summary]) -> None:
    case, way, summary = captured
    found = sorted((arena.method, arena.bytes) for arena in summary.arenas if arena.name.startswith("planned["))
    if way == "python" and "planned_python" in case.facts:
        assert {size for _, size in found} == set(case.facts["planned_python"])
    else:
        assert found == sorted(case.facts["planned"].items())


def test_planned_memory_is_executorchs(captured: tuple[Case, str, Summary]) -> None:
    case, way, summary = captured
    assert summary.peaks.inference is not None
    planned = category_bytes(summary.peaks.inference.moment, "executorch", "planned_memory")
    if way == "python" and "planned_python" in case.facts:
        assert planned == sum(case.facts["planned_python"])
    else:
        assert planned == sum(case.facts["planned"].values())


def test_delegates(captured: tuple[Case, str, Summary]) -> None:
    case, _, summary = captured
    found = Counter(delegate.method for delegate in summary.delegates)
    assert found == Counter({method: n for method, n in case.facts["delegates"].items() if n})
    for method, number in case.facts["delegates"].items():
        instances = sorted(delegate.instance for delegate in summary.delegates if delegate.method == method)
        assert instances == list(range(number))


def test_method_allocator(native: tuple[Case, Summary]) -> None:
    case, summary = native
    found = [arena for arena in summary.arenas if arena.name == "method_allocator"]
    assert len(found) == len(case.facts["planned"])
    if "method_allocator" in case.facts:
        assert [{"bytes": arena.bytes, "allocations": arena.allocations} for arena in found] == [
            case.facts["method_allocator"]
        ]


@pytest.mark.parametrize("options", [(), ("--dry",)], ids=["native", "dry"])
def test_packed_weights_are_all_found(options: tuple[str, ...]) -> None:
    """GIVEN six small convolutions THEN aligned blocks of their creators sum to the packed weights, no more."""
    summary = profile("convs", *CASES["convs"].shapes, *options)
    assert summary.peaks.inference is not None
    found = category_bytes(summary.peaks.inference.moment, XNNPACK, "packed_weights")
    assert found == CASES["convs"].facts["packed_weights_bytes"]


def test_findings(native: tuple[Case, Summary]) -> None:
    case, summary = native
    found = {str(finding.code): finding.bytes for finding in summary.findings}
    for code, expected in case.facts["findings"].items():
        assert code in found
        if expected is not None:
            size, tolerance = expected
            assert found[code] == pytest.approx(size, abs=tolerance)


def test_every_byte_has_an_owner(captured: tuple[Case, str, Summary]) -> None:
    """Bytes allocated inside ExecuTorch's phases that end as the host's: at most 0.1 %."""
    _, _, summary = captured
    allocated = sum(phase.allocated_bytes for phase in summary.phases)
    assert allocated > 0
    assert sum(phase.unowned_bytes for phase in summary.phases) <= 0.001 * allocated


def test_totals_are_sums(captured: tuple[Case, str, Summary]) -> None:
    _, _, summary = captured
    moments = [
        m for phase in summary.phases for m in (phase.peak, phase.peak_private, phase.live_start, phase.live_end)
    ]
    for moment in moments:
        counted = [held for held in moment.owners if is_counted(held.owner)]
        assert moment.private_bytes == sum(held.private_bytes for held in counted)
        assert moment.file_bytes == sum(held.file_bytes for held in counted)
        for held in moment.owners:
            assert held.private_bytes == sum(part.private_bytes for part in held.categories)
            assert held.file_bytes == sum(part.file_bytes for part in held.categories)


def test_rss_over_the_baseline(native: tuple[Case, Summary]) -> None:
    case, summary = native
    base = baseline_rss(summary)
    last = [phase.rss for phase in phases(summary, "inference")][-1]
    assert last is not None
    found = {
        "load": peak_rss(summary, "program_load", "method_load") - base,
        "overall": peak_rss(summary, "program_load", "method_load", "inference") - base,
        "steady": last.end_bytes - base,
    }
    for what, (mib, tolerance) in case.facts["over_baseline_mib"].items():
        assert found[what] / MIB == pytest.approx(mib, abs=tolerance), what


def test_counted_bytes_against_the_process_heap() -> None:
    """GIVEN the heap of a bare process at its peaks THEN etmem's figure is lower by the process's own few KiB alone."""
    case = CASES["mlp_dynamic"]
    summary = profile(case.name, *case.shapes)
    for at, expected in case.facts["process_bytes"].items():
        peak = summary.peaks.load if at == "load" else summary.peaks.inference
        assert peak is not None
        # In load the largest total and the largest private bytes are at different instants.
        kinds = ("inference",) if at == "inference" else ("program_load", "method_load")
        private = max(phase.peak_private.private_bytes for phase in phases(summary, *kinds))
        total = peak.moment.private_bytes + peak.moment.file_bytes
        assert 0 <= expected["private"] - private < 128 * 1024, at
        assert 0 <= expected["private_plus_file"] - total < 128 * 1024, at


def test_the_upper_bound_costs_its_input() -> None:
    case = CASES["mlp_dynamic"]
    summary = profile(case.name)
    assert [spec.shape for spec in summary.target.inputs] == [(4096, 2048)]
    assert summary.target.inputs[0].upper_bound
    mib, tolerance = case.facts["at_upper_bound"]["over_baseline_mib"]["overall"]
    peak = peak_rss(summary, "program_load", "method_load", "inference") - baseline_rss(summary)
    assert peak / MIB == pytest.approx(mib, abs=tolerance)


def test_balance(native: tuple[Case, Summary]) -> None:
    """RSS is the sum of the lines, and what is left over is within 2 % of what loading added, or 256 KiB."""
    _, summary = native
    assert [balance.at for balance in summary.balances] == ["load", "first_inference", "last_inference"]
    base = baseline_rss(summary)
    for balance in summary.balances:
        assert balance.rss_bytes == sum(line.bytes for line in balance.lines) + balance.unaccounted_bytes
        allowed = max(0.02 * (balance.rss_bytes - base), 256 * 1024)
        assert abs(balance.unaccounted_bytes) <= allowed, balance.at


def test_dry_says_nothing_of_pages() -> None:
    summary = profile("convs", *CASES["convs"].shapes, "--dry")
    assert summary.target.dry
    assert not summary.balances
    assert not summary.high_waters
    assert all(phase.rss is None for phase in summary.phases)
    assert "dry_outputs_invalid" in {issue.code for issue in summary.issues}


@pytest.mark.parametrize("name", NAMES)
def test_dry_counts_what_a_real_run_counts(name: str) -> None:
    case = CASES[name]
    dry, real = (profile(name, *case.shapes, *options) for options in ((), ("--dry",)))
    for at in ("load", "inference"):
        assert blocks(dry, at) == blocks(real, at)
