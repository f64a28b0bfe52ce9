"""What reports cost: a long trace's page, opening a page, a diff."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from statistics import median

from benchmarks.measuring import HERE, MIB, NATIVE, Row, peak_rss, run
from tests.models.registry import model_path

LONG, SHOWN = 10_000_000, 100_000
FLAGS = ("--no-sandbox", "--disable-gpu")

DIFF = """
import sys, time
from pathlib import Path
from etmem.bundle.comparing import compare_runs
from etmem.report.diff import render
start = time.perf_counter()
render(compare_runs(Path(sys.argv[1]), Path(sys.argv[2])))
print(time.perf_counter() - start)
"""


def rows(scratch: Path, times: int) -> Iterator[Row]:
    program = scratch / "malloc_loop"
    run(("cc", "-O2", HERE / "malloc_loop.c", f"-I{NATIVE / 'include'}", "-ldl", "-o", program))
    command, page = _page(scratch, program, LONG)
    yield Row("page of 10 million events", f"{run(command).seconds:.1f} s", f"{_mib(page)} MiB", "", "10 s")
    yield Row("", f"{peak_rss(command) / MIB:.0f} MiB RSS", "", "", "300 MiB")
    yield Row("it opens in Chromium", _opening(page, times))
    command, page = _page(scratch, program, SHOWN)
    run(command)
    yield Row("page of 100,000 events opens", _opening(page, times), "", "", "2 s")
    yield from _diff(scratch, times)


def _mib(path: Path) -> str:
    return f"{path.stat().st_size / MIB:.2f}"


def _page(scratch: Path, program: Path, events: int) -> tuple[tuple[object, ...], Path]:
    """What makes a page of a trace of so many events inside one inference, and the page."""
    etmem, trace, page = (sys.executable, "-m", "etmem"), scratch / "long.etmem", scratch / "long.html"
    run((*etmem, "run", "--quiet", "--output", trace, "--", program, events // 2, "scope"))
    return (*etmem, "report", trace, "--quiet", "--html", page), page


def _opening(page: Path, times: int) -> str:
    """Seconds from the address to the page drawn, in a browser that is running already; or what is missing for it."""
    found = shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        return "chromium: not installed (apt install chromium)"
    if find_spec("playwright") is None:
        return "playwright: not installed (pip install playwright)"
    from playwright.sync_api import sync_playwright

    taken = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=list(FLAGS))
        for _ in range(times):
            tab = browser.new_page(viewport={"width": 1280, "height": 900})
            start = time.perf_counter()
            tab.goto(page.as_uri())
            tab.wait_for_selector("html[data-ready=true]")
            tab.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
            taken.append(time.perf_counter() - start)
            tab.close()
        browser.close()
    return f"{median(taken):.2f} s"


def _diff(scratch: Path, times: int) -> Iterator[Row]:
    files = [scratch / f"{name}.json" for name in ("convs", "convs_three_delegates")]
    for file in files:
        trace = file.with_suffix(".etmem")
        run((sys.executable, "-m", "etmem", "profile", model_path(file.stem), "-q", "-o", trace, "--json", file))
    inside = median(float(run((sys.executable, "-c", DIFF, *files)).out) for _ in range(times))
    command = median(run((sys.executable, "-m", "etmem", "diff", *files)).seconds for _ in range(times))
    size = sum(len(json.loads(file.read_text())["phases"]) for file in files)
    yield Row("diff of two summaries", f"{inside:.3f} s", f"{size} phases; whole command {command:.2f} s", "", "0.5 s")
