"""What changed, on summaries built by hand."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from etmem.analysis.diff import diff
from etmem.analysis.diff_blocks import BlockGroup, block_changes, operator_changes
from etmem.analysis.diff_model import MismatchCode, ReasonCode
from etmem.model.summary import Finding, InputSpec, Peaks, Summary
from etmem.model.words import EXECUTORCH, Category, Certainty, FindingCode
from etmem.report import diff as text
from etmem.report import diff_html
from etmem.report.data import ReportData
from etmem.report.diff_markdown import to_markdown
from etmem.report.moment_samples import moment_data
from tests.report import samples
from tests.report.samples import XNNPACK


def codes(one: Summary, other: Summary) -> list[MismatchCode]:
    return [mismatch.code for mismatch in diff(one, other).mismatches]


def with_target(**changes: object) -> Summary:
    return replace(samples.convs(), target=replace(samples.convs().target, **changes))


def with_planned(count: int) -> Summary:
    return samples._convs(1, count, 195_072, samples.convs().findings)


@pytest.mark.parametrize("make", [samples.mlp, samples.convs, samples.llama, samples.two_methods, samples.dry])
def test_equal_runs_have_an_empty_diff(make):
    found = diff(make(), make())
    assert found.empty
    assert found.mismatches == ()
    assert found.reasons == ()
    assert "no change: every counted byte is the same" in text.render(found)
    assert "No change" in to_markdown(found)


def test_four_kibibytes_are_found_in_every_level():
    found = diff(with_planned(9_175_104), with_planned(9_175_104 + 4096))
    assert not found.empty
    assert {(row.at, row.owner, row.category, row.delta_bytes) for row in found.changes} == {
        (at, EXECUTORCH, Category.PLANNED_MEMORY, 4096) for at in ("load", "inference", "steady")
    }
    assert [(peak.at, peak.delta_bytes) for peak in found.peaks] == [
        ("inference", 4096),
        ("load", 4096),
        ("steady", 4096),
    ]
    assert all(change.delta_bytes == 4096 for change in found.phases)


def test_the_largest_change_comes_first_and_shares_add_up():
    found = diff(samples.convs(), samples.convs_three_delegates())
    rows = found.changes_at("inference")
    assert rows[0].category is Category.PLANNED_MEMORY
    assert rows[0].delta_bytes == 16_777_280 - 9_175_104
    assert [abs(row.delta_bytes) for row in rows] == sorted((abs(row.delta_bytes) for row in rows), reverse=True)
    assert sum(row.share for row in rows) == pytest.approx(1)


def test_changes_add_up_to_the_peaks_change():
    found = diff(samples.mlp(), samples.convs_three_delegates())
    for peak in found.peaks:
        assert sum(row.delta_bytes for row in found.changes_at(peak.at)) == peak.delta_bytes


def test_reasons_have_names():
    found = diff(samples.convs(), samples.convs_three_delegates())
    by_subject = {reason.subject: reason for reason in found.reasons}
    assert by_subject["graph_break"].code is ReasonCode.FINDING_NEW
    assert by_subject["delegates"].text == "XnnpackBackend in forward: 1 -> 3"
    back = diff(samples.convs_three_delegates(), samples.convs())
    gone = next(reason for reason in back.reasons if reason.subject == "graph_break")
    assert gone.code is ReasonCode.FINDING_GONE
    assert gone.delta_bytes == -by_subject["graph_break"].delta_bytes


def broken(method: str, count: int) -> Finding:
    detail = {"method": method, "backend": "XnnpackBackend"}
    return Finding(FindingCode.GRAPH_BREAK, EXECUTORCH, count, None, Certainty.ESTIMATED, f"{method} is cut.", detail)


def with_findings(*findings: Finding) -> Summary:
    return replace(samples.two_methods(), findings=findings)


def found_reasons(one: Summary, other: Summary) -> list[tuple[ReasonCode, int | None, object]]:
    rows = [row for row in diff(one, other).reasons if row.subject == "graph_break"]
    return [(row.code, row.delta_bytes, row.detail["method"]) for row in rows]


def test_findings_of_one_code_are_told_apart_by_their_method_and_size():
    old = with_findings(broken("prefill", 900), broken("decode", 500), broken("decode", 40))
    assert found_reasons(old, with_findings(broken("decode", 500), broken("prefill", 900), broken("decode", 40))) == []
    assert found_reasons(old, with_findings(broken("decode", 500), broken("decode", 40))) == [
        (ReasonCode.FINDING_GONE, -900, "prefill")
    ]
    assert found_reasons(old, with_findings(broken("prefill", 900), broken("decode", 43))) == [
        (ReasonCode.FINDING_GONE, -500, "decode"),
        (ReasonCode.FINDING_CHANGED, 3, "decode"),
    ]
    more = with_findings(broken("verify", 1000), broken("prefill", 901), broken("decode", 500), broken("decode", 40))
    assert found_reasons(old, more) == [
        (ReasonCode.FINDING_NEW, 1000, "verify"),
        (ReasonCode.FINDING_CHANGED, 1, "prefill"),
    ]


def test_the_first_inference_grows_whoever_grows_most():
    grown = Finding(FindingCode.FIRST_INFERENCE_GROWS, XNNPACK, 100, None, Certainty.EXACT, "It grows.")
    (reason,) = diff(with_findings(grown), with_findings(replace(grown, owner=EXECUTORCH, bytes=130))).reasons
    assert (reason.code, reason.delta_bytes) == (ReasonCode.FINDING_CHANGED, 30)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"arch": "aarch64"}, MismatchCode.ARCH),
        ({"isa": "avx2"}, MismatchCode.ISA),
        ({"pointer_bytes": 4}, MismatchCode.POINTER_WIDTH),
        ({"executorch": "1.4.1"}, MismatchCode.EXECUTORCH),
        ({"loader": "file"}, MismatchCode.LOADER),
        ({"runtime": "python"}, MismatchCode.RUNTIME),
        ({"preset": "android"}, MismatchCode.PRESET),
        ({"backend_options": ("XnnpackBackend:workspace_sharing_mode=0",)}, MismatchCode.BACKEND_OPTIONS),
        ({"threads": 1}, MismatchCode.THREADS),
        ({"iterations": 5}, MismatchCode.ITERATIONS),
        ({"dry": True}, MismatchCode.DRY),
        ({"inputs": (InputSpec("forward", 0, "float32", (1, 3, 64, 64)),)}, MismatchCode.INPUTS),
    ],
)
def test_another_way_of_running_is_told_by_a_code(changes, code):
    assert codes(samples.convs(), with_target(**changes)) == [code]


def test_another_page_size_or_allocator_is_told():
    base = samples.convs()
    large = replace(base, environment=replace(base.environment, page_bytes=16384))
    assert codes(base, large) == [MismatchCode.PAGE_SIZE]
    other = replace(base, environment=replace(base.environment, allocator="libjemalloc.so.2"))
    assert codes(base, other) == [MismatchCode.ALLOCATOR]


def test_other_inputs_leave_the_load_comparable():
    other = with_target(inputs=(InputSpec("forward", 0, "float32", (1, 3, 64, 64)),))
    found = diff(samples.convs(), other)
    assert {peak.at: peak.comparable for peak in found.peaks} == {"load": True, "inference": False, "steady": False}
    assert found.blocks_compared == "no"
    assert found.reasons[0].subject == "inputs"
    assert "(not alike)" in text.render(found)


def test_a_failed_run_is_said_and_withheld_owners_are_not_compared():
    assert MismatchCode.FAILED in codes(samples.mlp(), samples.failed())
    found = diff(samples.mlp(), samples.withheld())
    assert MismatchCode.OWNERS_WITHHELD in [mismatch.code for mismatch in found.mismatches]
    assert found.changes == ()


def group(size: int, count: int = 1, operator: str | None = None, at: str = "inference") -> BlockGroup:
    return BlockGroup(at, XNNPACK, Category.OPERATOR_BUFFERS, operator, size, file=False, count=count)


def test_blocks_are_told_by_size_and_number():
    found = block_changes([group(100, 3), group(50)], [group(100, 4), group(60)], complete=True)
    assert [(row.requested_bytes, row.a_count, row.b_count, row.delta_bytes) for row in found] == [
        (100, 3, 4, 100),
        (60, 0, 1, 60),
        (50, 1, 0, -50),
    ]


def test_of_a_summary_s_blocks_only_those_above_the_list_s_end_are_compared():
    full = [group(1000 - n) for n in range(20)]
    shifted = [group(2000), *full[:19]]
    assert [(row.requested_bytes, row.b_count) for row in block_changes(full, shifted, complete=False)] == [(2000, 1)]


def test_a_side_without_operators_does_not_make_two_blocks_of_one():
    assert block_changes([group(8, 1, "convolution2d")], [group(8)], complete=True) == ()
    assert operator_changes([group(8, 1, "convolution2d")], [group(8)]) == ()


def test_operators_are_summed():
    old = [group(8, 2, "convolution2d"), group(4, 1, "add")]
    new = [group(16, 2, "convolution2d"), group(4, 1, "add")]
    (row,) = operator_changes(old, new)
    assert (row.operator, row.delta_bytes) == ("convolution2d", 16)


def test_json_is_a_contract_and_the_same_bytes_each_time():
    found = diff(samples.convs(), samples.convs_three_delegates(), names=("a.json", "b.json"))
    data = json.loads(text.to_json(found))
    assert next(iter(data)) == "schema"
    assert data["schema"] == "etmem.diff/1"
    assert data["peaks"][0]["delta_bytes"] == found.peaks[0].delta_bytes
    again = diff(samples.convs(), samples.convs_three_delegates(), names=("a.json", "b.json"))
    assert text.to_json(found) == text.to_json(again)


def test_text_is_ascii_within_the_width():
    for one, other in ((samples.convs(), samples.hostile()), (samples.llama(), samples.mlp())):
        for full in (False, True):
            shown = text.render(diff(one, other, names=("x" * 200, "y\x1b[31m")), full=full)
            assert shown.isascii()
            assert "\x1b" not in shown
            assert max(map(len, shown.splitlines())) <= 80


def test_names_from_a_file_cannot_break_a_markdown_table():
    shown = to_markdown(diff(samples.convs(), samples.hostile(), names=("a|b`c", "d")))
    assert shown.startswith("### `a|b'c` ")
    assert "\x1b" not in shown


def series_total(page: ReportData, mark: str) -> int:
    stamp = next(one.stamp for one in page.marks if one.name == mark)
    at = page.samples.stamps.index(stamp)
    return sum(one.values[at] for one in page.samples.series if page.keys[one.key].counted)


@pytest.mark.parametrize("make", [samples.mlp, samples.convs, samples.llama, samples.two_methods, samples.dry])
def test_a_summary_alone_has_a_timeline_of_its_moments(make):
    summary = make()
    page = moment_data(summary, "m.json")
    for name in ("load", "inference", "steady"):
        peak = getattr(summary.peaks, name)
        if peak is not None:
            assert series_total(page, name) == peak.moment.private_bytes + peak.moment.file_bytes
    assert len(page.samples.stamps) == 3 * len(summary.phases)
    assert list(page.samples.times_ns) == sorted(page.samples.times_ns)
    assert all(span.begin < span.end for span in page.spans)
    known = sum(phase.rss is not None for phase in summary.phases)
    assert len(page.rss) == 2 * known


def test_the_page_is_the_same_bytes_each_time_and_holds_no_name_as_markup():
    one, other = samples.convs(), samples.hostile()

    def page() -> str:
        found = diff(one, other, names=("<a>", "b&c"))
        return diff_html.render(found, moment_data(one, "<a>"), moment_data(other, "b&c"))

    assert page() == page()
    head = page().partition("<main")[0]
    assert "<title>&lt;a&gt; \N{RIGHTWARDS ARROW} b&amp;c - etmem</title>" in head
    assert "<a>" not in page()
    assert "\x1b" not in page()


def test_a_run_that_saw_nothing_has_no_samples():
    page = moment_data(replace(samples.mlp(), phases=(), peaks=Peaks(None, None, None)), "m")
    assert page.samples.stamps == ()
    assert page.marks == ()
