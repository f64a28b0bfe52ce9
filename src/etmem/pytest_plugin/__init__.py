"""The pytest plugin: ``@pytest.mark.etmem(peak="20 MiB")`` and the ``etmem`` fixture.

    @pytest.mark.etmem(peak="20 MiB", owner="delegate:XnnpackBackend", tolerance="2%")
    def test_fits(etmem):
        etmem.profile("model.pte")

pytest imports this module in every run, so it imports nothing of etmem until a test asks for it.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from etmem.pytest_plugin.meter import Meter

MARKER = "etmem"
PROPERTY = "etmem"
_METER: pytest.StashKey[Meter] = pytest.StashKey()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "etmem(peak='20 MiB', owner='delegate:XnnpackBackend', tolerance='2%'): what the test profiles must keep to; "
        "also load, inference, first_inference, later_inference, steady (sizes), allocations (of a later inference), "
        "or what with max or baseline; measure, category, method, name. Without the etmem fixture the test itself is "
        "recorded.",
    )


@pytest.fixture
def etmem(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Meter:
    """Profiles a model (``etmem.profile(path)``) or a block (``with etmem.block():``), as often as you like."""
    from etmem.pytest_plugin.meter import Meter

    meter = Meter(tmp_path_factory.mktemp("etmem"))
    request.node.stash[_METER] = meter
    return meter


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Judges what was measured once the test itself has passed: a failure of its own comes first."""
    markers = list(item.iter_markers(MARKER))
    if not markers:
        return (yield)
    from etmem.pytest_plugin import judging

    meter = item.stash.get(_METER, None)
    if meter is not None:
        result = yield
        properties = judging.judge(markers, meter, item.path.parent)
    else:
        with judging.whole_test() as meter:
            result = yield
        properties = judging.judge(markers, meter, item.path.parent)
    item.user_properties += [(PROPERTY, text) for text in properties]
    return result


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What was measured, for the tests that passed: those that failed have said it themselves."""
    lines = [
        f"{report.nodeid}  {text}"
        for report in terminalreporter.getreports("passed")
        if report.when == "call"
        for name, text in report.user_properties
        if name == PROPERTY
    ]
    if lines:
        terminalreporter.write_sep("=", "memory")
        for line in lines:
            terminalreporter.write_line(line)
