"""A real browser without a screen, and pages that must neither complain nor reach the network."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Page, sync_playwright

import etmem
from etmem.report.exports import render
from tests.report.views import view_of

FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync")  # fmt: skip


@pytest.fixture(scope="session")
def browser():
    found = shutil.which("chromium") or shutil.which("google-chrome")
    assert found, "the page is tested in Chromium: apt-get install chromium"
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=list(FLAGS))
        yield started
        started.close()


@pytest.fixture(scope="session")
def tab(browser):
    """One page for all tests that do without a theme of their own, and what it complained of."""
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.set_default_timeout(8000)
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: complaints.append(request.url) if _reaches_out(request.url) else None)
    return page, complaints


@pytest.fixture
def show(tab, tmp_path):
    """``show(html)``: the page, drawn anew. At the end of the test no error and no request may have been seen."""
    page, complaints = tab
    page.set_viewport_size({"width": 1280, "height": 900})
    page.emulate_media(media="screen", color_scheme="light")

    def open_page(html: bytes, color_scheme: str = "light") -> Page:
        path = tmp_path / "report.html"
        path.write_bytes(html)
        page.emulate_media(color_scheme=color_scheme)
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready=true]", timeout=20_000)
        return page

    yield open_page
    said = [*complaints]
    complaints.clear()
    assert said == []


def _reaches_out(url: str) -> bool:
    return not url.startswith(("file:", "data:", "blob:"))


@pytest.fixture(scope="session")
def real(model, tmp_path_factory) -> etmem.Profile:
    """A run of the model whose three delegates share a workspace."""
    trace = tmp_path_factory.mktemp("real") / "convs.etmem"
    return etmem.profile(model("convs_three_delegates"), output=trace)


@pytest.fixture(scope="session")
def real_html(real, tmp_path_factory) -> bytes:
    path: Path = tmp_path_factory.mktemp("real") / "report.html"
    real.html(path)
    return path.read_bytes()


@pytest.fixture(scope="session")
def other(model, tmp_path_factory) -> etmem.Profile:
    """The same convolutions in one delegate."""
    return etmem.profile(model("convs"), output=tmp_path_factory.mktemp("other") / "one.etmem")


@pytest.fixture
def page_of(show):
    return lambda world, **options: show(render("html", view_of(world)), **options)
