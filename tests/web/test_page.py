"""The page in Chromium: its figures are the summary's, and every view answers to mouse and keyboard."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from etmem.model.summary import SourceLine
from etmem.report.exports import render
from tests.report.views import HOSTILE, ODD, dry, small, view_of


def total(moment) -> int:
    return moment.private_bytes + moment.file_bytes


def figure(page, selector: str) -> int:
    return int(page.locator(f"{selector} [data-bytes]").first.get_attribute("data-bytes"))


def chart_box(page):
    chart = page.locator("#timeline-chart")
    chart.scroll_into_view_if_needed()
    return chart.bounding_box()


def test_figures_are_those_of_the_summary(show, real, real_html):
    page, peaks = show(real_html), real.summary.peaks
    assert figure(page, "#figure-load") == total(peaks.load.moment)
    assert figure(page, "#figure-inference") == total(peaks.inference.moment)
    assert figure(page, "#figure-steady") == total(peaks.steady.moment)
    assert figure(page, "#figure-unaccounted") == real.summary.balances[-1].unaccounted_bytes


def test_all_digits_on_request(show, real, real_html):
    page = show(real_html)
    page.click("#all-digits")
    assert page.locator("#figure-load .value").inner_text() == f"{total(real.summary.peaks.load.moment):,} B"
    page.click("#all-digits")
    assert "MiB" in page.locator("#figure-load .value").inner_text()


def test_balance_adds_up_to_rss_and_explains_itself(show, real, real_html):
    page = show(real_html)
    for balance in real.summary.balances:
        page.click(f"#balance [data-value={balance.at}]")
        sizes = page.locator("#balance .legend li:not(.total) [data-bytes]").evaluate_all(
            "found => found.map(one => Number(one.dataset.bytes))"
        )
        assert sum(sizes) == balance.rss_bytes == figure(page, "#balance .legend .total")
        assert len(sizes) == len(balance.lines) + 1
    page.locator("#balance .bar .part").first.click()
    line = real.summary.balances[-1].lines[0]
    assert f"{line.bytes:,} B" in page.locator("dialog").inner_text()
    assert len(page.locator("dialog p").nth(1).inner_text()) > 40
    page.keyboard.press("Escape")
    assert not page.locator("dialog").evaluate("one => one.open")


@pytest.mark.parametrize("name", ["load", "inference", "steady"])
def test_blocks_at_a_named_moment(show, real, real_html, name):
    page = show(real_html)
    page.click(f"#timeline [data-mark={name}]")
    assert figure(page, "#live-total") == total(getattr(real.summary.peaks, name).moment)


def test_blocks_at_the_peak_are_the_summarys_largest(show, real, real_html):
    page = show(real_html)
    page.click("#timeline [data-mark=inference]")
    shown = page.locator("#blocks tbody td:first-child [data-bytes]").evaluate_all(
        "found => found.map(one => Number(one.dataset.bytes))"
    )
    largest = [b for b in real.summary.largest_blocks if b.at == "inference"]
    assert shown == sorted(shown, reverse=True)
    assert max(b.requested_bytes for b in largest) in shown


def test_clicking_and_zooming_the_timeline(show, real_html):
    page = show(real_html)
    box = chart_box(page)
    before = page.locator("#blocks h3").inner_text()
    page.mouse.click(box["x"] + 80, box["y"] + 200)
    assert page.locator("#blocks h3").inner_text() != before
    ticks = page.locator("#timeline-chart .axes text").all_text_contents()
    page.mouse.move(box["x"] + 400, box["y"] + 150)
    page.mouse.down()
    page.mouse.move(box["x"] + 700, box["y"] + 160, steps=4)
    page.mouse.up()
    assert page.locator("#timeline-chart .axes text").all_text_contents() != ticks
    page.click("#timeline .reset")
    assert page.locator("#timeline-chart .axes text").all_text_contents() == ticks


def test_hover_reads_the_stack_of_owners(show, real_html):
    page = show(real_html)
    box = chart_box(page)
    page.mouse.move(box["x"] + 800, box["y"] + 150)
    note = page.locator(".tooltip").inner_text()
    assert "XnnpackBackend" in note
    assert "ExecuTorch" in note


@pytest.mark.parametrize(("grouping", "layers"), [("owner", 4), ("category", 9), ("instance", 7), ("operator", 8)])
def test_the_stack_can_be_cut_four_ways(show, real_html, grouping, layers):
    page = show(real_html)
    top = page.locator("#timeline-chart .peak").first.get_attribute("d")
    page.click(f"#timeline [data-value={grouping}]")
    assert page.locator("#timeline-chart .layer").count() >= layers
    assert page.locator("#timeline-chart .peak").first.get_attribute("d") == top, "the sum is the same"


def test_one_colour_for_each_owner(show, real_html):
    page = show(real_html)
    colours = {
        row.locator("td").first.inner_text(): row.locator("td i").first.evaluate("i => i.style.backgroundColor")
        for row in page.locator("#owners tbody tr").all()
    }
    for name, colour in colours.items():
        layer = page.locator(f"#timeline-chart .layer[data-layer='{name}']")
        if layer.count():
            assert layer.first.evaluate("e => getComputedStyle(e).fill") == colour


def test_owners_sort_filter_and_sum(show, real, real_html):
    page = show(real_html)
    sums = {at: figure(page, f"#owners [data-sum={at}]") for at in ("load", "inference")}
    assert sums == {at: total(getattr(real.summary.peaks, at).moment) for at in sums}
    page.fill("#owners .filter", "planned")
    assert page.locator("#owners tbody tr").count() == 1
    page.fill("#owners .filter", "")
    page.click("#owners th:has-text('Category') button")
    names = [text.split("\n")[0] for text in page.locator("#owners tbody tr td:nth-child(3)").all_inner_texts()]
    assert names == sorted(names)
    page.click("#owners th:has-text('Category') button")
    assert page.locator("#owners th[aria-sort=descending]").inner_text().startswith("Category")


def test_flame_graph_searches_and_zooms(show, real, real_html):
    page = show(real_html)
    root = page.locator("#flame .frame").first
    assert f"{total(real.summary.peaks.inference.moment):,} B" in root.get_attribute("aria-label")
    page.fill("#flame-search", "workspace")
    workspace = sum(
        c.private_bytes for o in real.summary.peaks.inference.moment.owners for c in o.categories
        if c.category == "workspace"
    )  # fmt: skip
    page.click("#all-digits")
    assert f"{workspace:,} B" in page.locator("#flame .found").inner_text()
    page.fill("#flame-search", "(")
    assert "not a regular expression" in page.locator("#flame .found").inner_text()
    page.fill("#flame-search", "")
    frame = page.locator("#flame .frame:has-text('XnnpackBackend[1] execute')").first
    frame.click()
    assert frame.bounding_box()["width"] > 1000
    page.keyboard.press("Escape")
    page.click("#flame [data-value=native]")
    assert page.locator("#flame .frame", has_text="xnn_").count() > 0
    page.click("#flame [data-value=load]")
    page.click("#flame [data-value=allocated]")


def test_keyboard_alone(show, real, real_html):
    page = show(real_html)
    page.keyboard.press("l")
    assert figure(page, "#live-total") == total(real.summary.peaks.load.moment)
    page.keyboard.press("i")
    assert figure(page, "#live-total") == total(real.summary.peaks.inference.moment)
    page.focus("#timeline-chart")
    at = page.locator("#blocks h3").inner_text()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert page.locator("#blocks h3").inner_text() != at
    page.keyboard.press("+")
    page.keyboard.press("0")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "flame-search"
    page.focus("#flame .frame[tabindex='0']")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.getAttribute('aria-level')") == "2"


def test_the_memory_plan_by_arrow_keys(show, real, real_html):
    page = show(real_html)
    page.focus("#arenas .map")
    page.keyboard.press("ArrowRight")
    first = page.locator("#arenas .reading").inner_text()
    assert page.locator("#arenas .chosen").count() == 1
    sizes = {tensor.planned_bytes for tensor in real.summary.planned_tensors}
    assert int(page.locator("#arenas .reading [data-bytes]").get_attribute("data-bytes")) in sizes
    page.keyboard.press("End")
    assert page.locator("#arenas .reading").inner_text() != first
    page.keyboard.press("Escape")
    assert page.locator("#arenas .chosen").count() == 0


def test_theme_follows_the_system_and_the_button(show, real_html):
    page = show(real_html, color_scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(ground)
    page.keyboard.press("t")
    light = page.evaluate(ground)
    assert dark != light
    page.keyboard.press("t")
    assert page.evaluate(ground) == dark


def test_prints_without_controls(show, real_html):
    page = show(real_html)
    page.emulate_media(media="print")
    assert not page.locator("nav").is_visible()
    assert page.locator("#flame .frame").first.is_visible()
    assert len(page.pdf()) > 20_000


def test_narrow_screens_do_not_scroll_sideways(show, real_html):
    page = show(real_html)
    page.set_viewport_size({"width": 420, "height": 800})
    page.wait_for_timeout(200)
    assert page.evaluate("document.documentElement.scrollWidth") <= 420


def test_names_from_files_are_text(page_of):
    page = page_of(ODD["hostile"]())
    assert page.locator("img, iframe").count() == 0
    assert page.locator("script").count() == 2, "the data and the program"
    assert page.title() != "taken"
    assert HOSTILE[:12] in page.locator("#operators").inner_text()
    assert "\u202e" not in page.locator("body").inner_text()


@pytest.mark.parametrize("name", ODD)
def test_odd_traces_have_a_page(page_of, name):
    page = page_of(ODD[name]())
    sections = page.locator("section").evaluate_all("found => found.map(one => one.id)")
    assert sections[0] == "verdict"
    assert sections[-1] == "issues"
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280


def test_what_is_live_when_a_process_dies_can_be_seen(page_of):
    page = page_of(ODD["killed_in_load"]())
    widths = page.locator("#timeline-chart .layer").evaluate_all("all => all.map(one => one.getBBox().width)")
    assert max(widths) > 20
    ticks = [text for text in page.locator("#timeline-chart .axes text").all_text_contents() if text.endswith("s")]
    assert len(set(ticks)) == len(ticks) > 2


def test_source_lines_of_an_etrecord(show):
    view = view_of(small())
    line = SourceLine("/src/model.py", 42, "forward", "y = x + <b>1</b>", "layers.0", "aten.add.Tensor")
    rows = tuple(replace(row, sources=(line,)) for row in view.summary.instructions)
    page = show(render("html", replace(view, summary=replace(view.summary, instructions=rows))))
    assert "layers.0 model.py:42 y = x + <b>1</b>" in page.locator("#operators").inner_text()


def test_what_the_program_told_has_a_part_of_its_own(page_of):
    page = page_of(ODD["told"]())
    text = page.locator("#told").inner_text()
    assert "40.0 MiB" in text
    assert "tokens" in text
    assert "decode" in text
    assert page.locator("#told [data-series]").count() == 3
    labels = page.locator("#told svg").evaluate_all("all => all.map(one => one.getAttribute('aria-label'))")
    assert labels[1:] == ["gpu.allocated: 39.0 MiB to 40.0 MiB", "queue: -2 to 3"]
    assert page.locator("#told path.sampled").count() == 0
    page.locator("#told [data-series=queue]").scroll_into_view_if_needed()
    box = page.locator("#told [data-series=queue]").bounding_box()
    page.mouse.move(box["x"] + box["width"] - 20, box["y"] + 30)
    assert page.locator(".tooltip").inner_text().startswith("-2 from")
    assert page.locator("nav a[href='#told']").count() == 1
    assert page_of(small()).locator("nav a[href='#told'], #told").count() == 0


def test_what_a_source_sampled_says_so(page_of):
    world = ODD["told"]()
    world.note("source.gpu", "the driver's own <b>count</b>, asked every 10 ms")
    page = page_of(world)
    assert "Sampled: the driver's own <b>count</b>, asked every 10 ms" in page.locator("#told").inner_text()
    assert page.locator("#told path.sampled").count() == 1
    assert "gpu.allocated, sampled" in page.locator("#told [data-series='gpu.allocated']").text_content()


def test_a_dry_run_shows_no_rss(show):
    page = show(render("html", dry(small())))
    assert "dry run" in page.locator("#balance").inner_text()
    assert page.locator("#timeline-chart .rss").count() == 0
    assert page.locator("#figure-load .value").inner_text().endswith("MiB")


def test_the_file_is_small_and_whole(real_html):
    view = view_of(ODD["empty"]())
    assert len(render("html", view)) < 600_000, "script, style and words"
    text = real_html.decode()
    assert not re.search(r"""(?:src|href)=["']?(?:https?:)?//""", text)
    assert text.count("</script>") == 2


def test_the_same_trace_gives_the_same_page(real, real_html, tmp_path):
    again = tmp_path / "again.html"
    real.html(again)
    assert again.read_bytes() == real_html
