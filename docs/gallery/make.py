# ruff: noqa: INP001 -- a script, no package
"""Takes the pictures of this gallery: ``python make.py LLAMA.pte ...`` profiles each model and opens its page.

Needs the packages of ``etmem[test]`` and Chromium. Models are told by their file names, which ``SHOTS`` lists.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

import etmem

HERE = Path(__file__).parent
SHOTS = {
    "mlp.pte": ("verdict", "light", "mlp-double-weights"),
    "convs_three_delegates.pte": ("timeline", "light", "convs-timeline"),
    "llama.pte": ("arenas", "light", "llama-planned-memory"),
    "openvino_and_xnnpack.pte": ("balance", "dark", "openvino-balance"),
    "convs.pte": ("flame", "dark", "convs-flame-graph"),
}
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


def main(models: list[Path]) -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        for model in models:
            page_path = Path(folder) / f"{model.stem}.html"
            etmem.profile(model, output=Path(folder) / f"{model.stem}.etmem").html(page_path)
            section, scheme, name = SHOTS[model.name]
            page = browser.new_page(viewport={"width": 1200, "height": 820}, color_scheme=scheme)
            page.goto(page_path.as_uri())
            page.wait_for_selector("html[data-ready=true]")
            shoot(page, section, HERE / f"{name}.png")
        browser.close()


def shoot(page: Page, section: str, path: Path) -> None:
    if section != "verdict":
        page.evaluate(f"document.getElementById('{section}').scrollIntoView()")
    if section == "flame":
        page.click("#flame [data-value=native]")
        page.fill("#flame-search", "workspace|plan_memory")
    page.wait_for_timeout(500)
    page.screenshot(path=path)


main([Path(argument) for argument in sys.argv[1:]])
