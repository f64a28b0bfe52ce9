"""The plugin in pytest runs of its own."""

from __future__ import annotations

import os
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from etmem.capture.build import cache
from etmem.model.errors import InputError
from etmem.pytest_plugin.judging import marker_limits

pytest_plugins = ("pytester",)

CACHE = cache()
INSTALLED = any(point.value == "etmem.pytest_plugin" for point in entry_points(group="pytest11"))


@pytest.fixture
def run(pytester, monkeypatch):
    """Runs a test file in a pytest of its own, with the plugin as an installation would load it."""
    source = Path(sys.modules["etmem"].__file__ or "").parents[1]
    # pytester gives its runs a home of their own, where nothing is built yet.
    monkeypatch.setenv("ETMEM_CACHE", str(CACHE))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(source), os.environ.get("PYTHONPATH", "")]))

    def start(text: str, *arguments: str):
        pytester.makepyfile(text)
        plugin = () if INSTALLED else ("-p", "etmem.pytest_plugin")
        return pytester.runpytest_subprocess(*plugin, "--strict-markers", "-p", "no:cacheprovider", *arguments)

    return start


def test_limits_are_judged_on_what_was_profiled(run, model):
    result = run(
        f"""
        import pytest
        MODEL = {str(model("convs"))!r}

        @pytest.mark.etmem(peak="60 MiB", load="10 MiB", allocations=0)
        def test_fits(etmem):
            profile = etmem.profile(MODEL)
            assert profile.summary.peaks.load is not None

        @pytest.mark.etmem(peak="20 MiB", owner="delegate:XnnpackBackend", tolerance="2%")
        def test_too_large(etmem):
            etmem.profile(MODEL)

        @pytest.mark.etmem(peak="20 MiB")
        def test_nothing_measured(etmem):
            pass

        @pytest.mark.etmem(peak="1 GiB", owner="delegate:CoreMLBackend")
        def test_lacking(etmem):
            etmem.profile(MODEL)

        @pytest.mark.etmem(peak="20 MiB")
        def test_own_failure_comes_first(etmem):
            etmem.profile(MODEL)
            raise RuntimeError("its own")

        def test_without_a_marker(etmem):
            assert "PEAK of load" in etmem.profile(MODEL).text()
        """
    )
    result.assert_outcomes(passed=2, failed=4)
    result.stdout.fnmatch_lines(
        [
            "OVER overall private, delegate:XnnpackBackend: 45,3*",
            "*delegate:XnnpackBackend operator_buffers*28,313*",
            "PEAK of inference *",
            "*nothing was measured*",
            "delegate:CoreMLBackend: it has XnnpackBackend",
            "*RuntimeError: its own",
            "*= memory =*",
            "*::test_fits  load private: 9,4*",
        ]
    )


def test_a_block_and_a_whole_test_are_recorded(run, model):
    result = run(
        f"""
        import pytest
        from executorch.runtime import Runtime
        import torch

        def load_and_run():
            method = Runtime.get().load_program({str(model("convs"))!r}).load_method("forward")
            for _ in range(2):
                method.execute([torch.zeros(1, 3, 256, 256)])

        @pytest.mark.etmem(inference="60 MiB")
        def test_block(etmem):
            with etmem.block():
                load_and_run()

        @pytest.mark.etmem(inference="20 MiB")
        def test_block_too_large(etmem):
            with etmem.block() as recording:
                load_and_run()
            assert recording.summary().peaks.inference is not None

        @pytest.mark.etmem(inference="60 MiB")
        def test_whole_test():
            load_and_run()

        @pytest.mark.etmem(inference="60 MiB")
        def test_runs_no_model():
            pass
        """
    )
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(["*OVER inference private*", "*are wrong or missing: no_executorch*"])


def test_workers_of_xdist_measure_alike(run, model):
    result = run(
        f"""
        import pytest

        @pytest.mark.parametrize("number", range(4))
        @pytest.mark.etmem(load="9 MiB")
        def test_one(etmem, number):
            etmem.profile({str(model("convs"))!r})
        """,
        *("-n", "2"),
    )
    result.assert_outcomes(passed=4)
    lines = [line for line in result.outlines if "::test_one[" in line and "load private: " in line]
    assert len(lines) == 4
    assert len({line.partition("  ")[2] for line in lines}) == 1


def test_a_baseline_is_relative_to_the_test(run, pytester, model):
    import etmem

    summary = etmem.profile(model("convs"), output=pytester.path / "x.etmem")
    (pytester.path / "base.json").write_text(summary.to_json())
    result = run(
        f"""
        import pytest

        @pytest.mark.etmem(what="overall", baseline="base.json")
        @pytest.mark.parametrize("name", [{str(model("convs"))!r}, {str(model("convs_three_delegates"))!r}])
        def test_one(etmem, name):
            etmem.profile(name)
        """
    )
    result.assert_outcomes(passed=1, failed=1)


def limits(*args: object, **kwargs: object):
    return marker_limits(pytest.Mark("etmem", args, kwargs, _ispytest=True))


def test_the_marker_s_keywords():
    peak, allocations = limits(peak="1 KiB", allocations=0, method="decode")
    assert (peak.what, peak.max, peak.method) == ("overall", 1024, "decode")
    assert (allocations.what, allocations.measure, allocations.max) == ("later_inference", "allocations", 0)
    (general,) = limits(what="steady", max="1 MB", measure="live")
    assert (general.what, general.measure, general.max) == ("steady", "live", 1_000_000)


@pytest.mark.parametrize("wrong", [{}, {"peek": "1 MiB"}, {"peak": "big"}, {"peak": "1 MiB", "owner": "x"}])
def test_wrong_keywords(wrong):
    with pytest.raises(InputError, match=r"mark\.etmem"):
        limits(**wrong)


def test_positional_arguments_are_refused():
    with pytest.raises(pytest.fail.Exception, match="keywords only"):
        limits("20 MiB")
