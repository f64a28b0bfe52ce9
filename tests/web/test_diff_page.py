"""The page of a diff in Chromium: its figures are the diff's, and both timelines answer together."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from etmem.analysis.diff import diff
from etmem.bundle.comparing import compare_as_page, compare_programs
from etmem.report.diff_html import render
from etmem.report.diff_program import to_html
from etmem.report.moment_samples import moment_data
from tests.report import samples
from tests.report.views import HOSTILE, MIB, ODD, view_of


@pytest.fixture(scope="module")
def compared(real, other):
    """What ``etmem diff one.etmem three.etmem --html`` writes, and the diff that it shows."""
    found, page = compare_as_page(other.trace_path, real.trace_path)
    return found, page.encode()


def sizes(page, selector: str) -> list[int]:
    return page.locator(f"{selector} [data-bytes]").evaluate_all("all => all.map(one => Number(one.dataset.bytes))")


def of_summaries(one, two, names=("a.json", "b.json")) -> bytes:
    return render(diff(one, two, names=names), moment_data(one, names[0]), moment_data(two, names[1])).encode()


def test_figures_are_those_of_the_diff(show, compared):
    found, html = compared
    page = show(html)
    for peak in found.peaks:
        assert sizes(page, f"#figure-{peak.at}") == [peak.delta_bytes, peak.a.total, peak.b.total]
    assert "graph_break" in page.locator("#reasons").inner_text()
    assert "Same target, runtime and options." in page.locator("#mismatches").inner_text()
    page.keyboard.press("b")
    assert page.locator("#figure-inference .value").inner_text() == f"+{found.peaks[0].delta_bytes:,} B"


def test_what_moved_is_the_diffs_rows_at_each_moment(show, compared):
    found, html = compared
    page = show(html)
    for at in ("inference", "load", "steady"):
        page.click(f"#changes [data-value={at}]")
        rows = page.locator("#changes tbody .change").evaluate_all("all => all.map(one => Number(one.dataset.bytes))")
        assert rows == [row.delta_bytes for row in found.changes_at(at)]
        assert sizes(page, "#changes tfoot") == [sum(rows)]


def test_every_level_has_its_table(show, compared):
    found, html = compared
    titles = show(html).locator("#details h3").all_inner_texts()
    assert titles[:3] == ["Delegate instances", "Operators inside delegates", "Blocks (all compared)"]
    assert titles[3:5] == ["Arenas", "Phases"]
    assert titles[5].startswith("Beside")
    assert found.beside


def test_two_timelines_on_one_scale(show, compared):
    found, html = compared
    page = show(html)
    ticks = [page.locator(f"#timeline-{side} .axes text[text-anchor=end]").all_text_contents() for side in "ab"]
    assert ticks[0] == ticks[1]
    heights = [float(re.match(r"M[^,]+,([\d.]+)", page.locator(f"#timeline-{side} .peak[data-peak=inference]")
               .get_attribute("d"))[1]) for side in "ab"]  # fmt: skip
    (low, high) = (page.locator("#timeline-a .axes text[text-anchor=end]").nth(n) for n in (0, 1))
    step = float(low.get_attribute("y")) - float(high.get_attribute("y"))
    unit = float(high.text_content().split()[0]) * MIB / step
    inference = found.peaks[0]
    assert (heights[0] - heights[1]) * unit == pytest.approx(inference.delta_bytes, abs=0.1 * MIB)


@pytest.mark.parametrize("grouping", ["category", "instance", "operator"])
def test_both_are_stacked_and_moved_together(show, compared, grouping):
    page = show(compared[1])
    before = [page.locator(f"#timeline-{side} .layer").count() for side in "ab"]
    page.click(f"#timeline [data-value={grouping}]")
    after = [page.locator(f"#timeline-{side} .layer").count() for side in "ab"]
    assert after[0] >= before[0]
    assert after[1] > before[1]
    cursors = [page.locator(f"#timeline-{side} .cursor line").get_attribute("x1") for side in "ab"]
    page.keyboard.press("l")
    moved = [page.locator(f"#timeline-{side} .cursor line").get_attribute("x1") for side in "ab"]
    assert all(new != old for new, old in zip(moved, cursors, strict=True))


def test_zooming_one_leaves_the_scale_of_bytes(show, compared):
    page = show(compared[1])
    ticks = page.locator("#timeline-b .axes text[text-anchor=end]").all_text_contents()
    page.focus("#timeline-a")
    page.keyboard.press("+")
    assert page.locator("#timeline-a .axes text[text-anchor=end]").all_text_contents() == ticks
    page.click("#timeline .reset")


def test_two_programs_have_a_page_of_what_their_files_say(show, model):
    found = compare_programs(model("convs"), model("convs_three_delegates"))
    page = show(to_html(found).encode())
    shown = page.locator("#changes tbody tr").count()
    assert shown == len(found.changes) > 8
    planned = next(row for row in found.changes if row.what == "planned")
    row = page.locator("#changes tbody tr", has=page.locator("td", has_text="planned[1]"))
    assert row.locator("[data-bytes]").evaluate_all("all => all.map(one => Number(one.dataset.bytes))") == [
        planned.a, planned.b, planned.delta,
    ]  # fmt: skip
    estimates = [row.name for row in found.changes if row.what == "estimate"]
    assert len(estimates) == 4, "load, first and later inferences, rest"
    assert page.locator("#verdict .figure").count() == len(estimates)
    page.keyboard.press("b")
    assert f"+{planned.delta:,} B" in row.inner_text()
    hostile = replace(found, changes=(replace(planned, name=HOSTILE, method=HOSTILE), *found.changes))
    page = show(to_html(replace(hostile, a=HOSTILE)).encode())
    assert page.locator("img, iframe").count() == 0
    assert "\u202e" not in page.locator("body").inner_text()
    page = show(to_html(replace(found, changes=())).encode())
    assert "No change in what the files say" in page.locator("#verdict").inner_text()


def test_equal_runs_say_so(show, real):
    found, html = compare_as_page(real.trace_path, real.trace_path)
    assert found.empty
    page = show(html.encode(), color_scheme="dark")
    assert page.locator(".sentence").inner_text() == "No change: every counted byte is the same."
    assert page.locator("#details table").count() == 1, "what stands beside"


def test_two_summaries_and_what_is_not_alike(show):
    page = show(of_summaries(samples.mlp(), samples.dry()))
    assert page.locator("#timeline-a .layer").count() > 1
    assert "Of a summary only the begin" in page.locator("#timeline").inner_text()
    assert page.locator("#mismatches li").count() >= 1
    page.locator("#mismatches .word").first.click()
    assert len(page.locator("dialog p").first.inner_text()) > 40
    assert "No entry" not in page.locator("dialog").inner_text()
    page.keyboard.press("Escape")


def test_hostile_names_and_runs_without_figures(show):
    page = show(of_summaries(samples.hostile(), samples.withheld(), names=(HOSTILE * 20, "b")))
    assert page.locator("img, iframe").count() == 0
    assert page.title() != "taken"
    assert "\u202e" not in page.locator("body").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    empty = view_of(ODD["empty"]()).summary
    page = show(of_summaries(empty, samples.mlp()))
    assert "Nothing of ExecuTorch was live" in page.locator("#timeline").inner_text()


def test_prints_and_fits_a_narrow_screen(show, compared):
    page = show(compared[1])
    page.set_viewport_size({"width": 420, "height": 800})
    page.wait_for_timeout(200)
    assert page.evaluate("document.documentElement.scrollWidth") <= 420
    page.emulate_media(media="print")
    assert not page.locator("nav").is_visible()
    assert len(page.pdf()) > 20_000
