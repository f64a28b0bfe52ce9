# ruff: noqa: INP001 -- a script, no package
"""Takes the pictures of this gallery: ``python make.py LLAMA.pte ...`` profiles each model and opens its page.

Needs the packages of ``etmem[test]`` and Chromium. Models are told by their file names, which ``SHOTS`` lists.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

import etmem
from etmem.bundle.comparing import compare_as_page

HERE = Path(__file__).parent
SHOTS = {
    "mlp.pte": ("verdict", "light", "mlp-double-weights"),
    "convs_three_delegates.pte": ("timeline", "light", "convs-timeline"),
    "llama.pte": ("arenas", "light", "llama-planned-memory"),
    "openvino_and_xnnpack.pte": ("balance", "dark", "openvino-balance"),
    "convs.pte": ("flame", "dark", "convs-flame-graph"),
    "mobilenet.pte": ("operators", "light", "mobilenet-operators"),
}
DIFF = ("mobilenet.pte", "mobilenet_int8.pte")
"""Compared where both are given."""
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


def main(models: list[Path]) -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        for model in models:
            trace = Path(folder) / f"{model.stem}.etmem"
            profile = etmem.profile(model, output=trace)
            if model.name in SHOTS:
                section, scheme, name = SHOTS[model.name]
                profile.html(trace.with_suffix(".html"))
                shoot(open_page(browser, trace.with_suffix(".html"), scheme), section, HERE / f"{name}.png")
        a, b = (Path(folder) / name.replace(".pte", ".etmem") for name in DIFF)
        if a.exists() and b.exists():
            page = Path(folder) / "diff.html"
            page.write_text(compare_as_page(a, b)[1])
            shoot(open_page(browser, page, "light"), "diff", HERE / "mobilenet-int8-diff.png")
        browser.close()


def open_page(browser: Browser, path: Path, scheme: str) -> Page:
    page = browser.new_page(viewport={"width": 1200, "height": 820}, color_scheme=scheme)
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready=true]")
    return page


def shoot(page: Page, section: str, path: Path) -> None:
    if section == "flame":
        page.click("#flame [data-value=native]")
        page.fill("#flame-search", "workspace|plan_memory")
    if section == "operators":
        page.click("#timeline [data-value=operator]")
        page.click("#timeline [data-value=events]")
    if section == "diff":
        page.set_viewport_size({"width": 1200, "height": 1130})
        page.uncheck("#timeline label:has-text('RSS') input")
    place = {"verdict": "", "operators": "timeline", "diff": "timeline"}.get(section, section)
    if place:
        page.evaluate(f"document.getElementById('{place}').scrollIntoView()")
    page.wait_for_timeout(500)
    page.screenshot(path=path)


main([Path(argument) for argument in sys.argv[1:]])
