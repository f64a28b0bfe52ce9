"""The text report: documented first screens, goldens of every kind of run, and what must hold for all of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from etmem.report.text import EXACT_WIDTH, render
from tests.report import samples

GOLDENS = Path(__file__).with_name("goldens")
UPDATE = "ETMEM_UPDATE_GOLDENS"
"""Set it when the report's form was changed on purpose; the diff of the goldens is then part of the review."""

MLP_HEAD = """\
mlp.pte  64.0 MiB  forward f32[1,2048]  XnnpackBackend x1   x86-64 avx512, mmap
PEAK of load       128.1 MiB   64.1 private + 64.0 file   2.0 x file  RSS +128.7
PEAK of inference   64.1 MiB   64.1 private +    - file   1.0 x file  RSS  +65.1
MiB                                     load   inference      steady
XnnpackBackend[0]                      128.1        64.1        64.1
  packed weights          4 blocks      64.0        64.0        64.0  ##########
  original weights                      64.0 f         -           -  ##########
  workspace, other                      0.04        0.03        0.03
ExecuTorch                              0.02        0.02        0.02
beside: host inputs, outputs               -        0.02        0.02
"""
MLP_BALANCE = """\
RSS at rest 70.1 = XnnpackBackend 64.06 + ExecuTorch 0.02 + host 0.01
                 + libraries 5.61 + process and malloc 0.41 + unaccounted 0.00
Kernel's high water in load 133.7 = 128.1 counted + 5.0 before load + 0.6 other
"""
CONVS_TABLE = """\
MiB                                     load   inference      steady
XnnpackBackend[0]                        0.4        43.2        43.2
  operator buffers        6 blocks         -        27.0        27.0  ##########
  workspace               1 block          -        16.0        16.0  ######
  weights  (+0.2 f original in load)     0.4         0.2         0.2
ExecuTorch  planned memory               8.8         8.8         8.8  ###
beside: host inputs, outputs               -         0.8         0.8

FINDINGS
1 first_inference_grows  43.0 MiB  appears in the first inference and stays: a
  check after load sees 9.2 of 52.0.
2 indirection_buffers    27.0 MiB  6 convolutions, 4,718,952 B each: 256x256
  outputs, 9 taps, 8 B pointers, tile 7 (avx512; 4,718,736 on cortex-a76).
"""
THREE_TABLE = """\
XnnpackBackend[0..2]                     0.4        43.2        43.2
  operator buffers  [0]9 [1]9 [2]9         -        27.0        27.0  ##########
  workspace         shared by [0..2]       -        16.0        16.0  ######
  weights  (+0.2 f original in load)     0.4         0.2         0.2
ExecuTorch  planned memory              16.0        16.0        16.0  ######
beside: host inputs, outputs               -         0.8         0.8
"""


@pytest.mark.parametrize(
    ("sample", "text"),
    [
        (samples.mlp, MLP_HEAD),
        (samples.mlp, MLP_BALANCE),
        (samples.convs, CONVS_TABLE),
        (samples.convs_three_delegates, THREE_TABLE),
    ],
)
def test_the_documented_first_screens(sample, text):
    assert text in render(sample(), trace_path="mlp.etmem")


def test_the_first_ten_lines_answer_whose_and_what():
    assert render(samples.mlp()).startswith(MLP_HEAD)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *((name, {}) for name in samples.EVERY),
        *((name, {"full": True}) for name in samples.EVERY),
        ("convs", {"width": 120}),
        ("portable", {"width": 120}),
        ("mlp", {"width": 120, "full": True}),
        ("mlp", {"bytes_exact": True}),
        ("portable", {"bytes_exact": True}),
        ("mlp", {"bytes_exact": True, "full": True}),
    ],
)
def test_goldens(name, options):
    # GIVEN a summary, WHEN it is rendered, THEN it reads exactly as reviewed.
    suffix = "".join(f"-{key}" if value is True else f"-{value}" for key, value in options.items())
    golden = GOLDENS / f"{name}{suffix}.txt"
    text = render(samples.EVERY[name](), trace_path=f"{name}.etmem", **options)
    if os.environ.get(UPDATE):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text, encoding="ascii")
    assert text == golden.read_text(encoding="ascii")


@pytest.mark.parametrize("sample", samples.EVERY.values(), ids=samples.EVERY)
@pytest.mark.parametrize("width", [40, 80, 100, 120])
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("exact", [False, True])
def test_lines_are_printable_ascii_of_the_page_s_width(sample, width, full, exact):
    trace = "/tmp/\x1b[0m" + "t" * 300 + ".etmem"
    text = render(sample(), width=width, full=full, bytes_exact=exact, trace_path=trace)
    for line in text.split("\n"):
        assert len(line) <= max(width, EXACT_WIDTH if full and exact else 80)
        assert line.isascii()
        assert line == "" or line.isprintable()
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


def test_a_failed_run_has_its_error_and_no_inference():
    text = render(samples.failed())
    assert "PEAK of inference      -       nothing seen" in text
    assert "error program_failed  loading method forward failed" in text
    assert "  hint: give the library" in text
    assert "inference      steady" not in text


def test_withheld_owners_are_never_shown_as_zero():
    text = render(samples.withheld())
    assert "error hook_not_reached" in text
    assert "0.0" not in text


def test_a_dry_run_has_no_rss_and_says_so():
    text = render(samples.dry(), full=True)
    assert "dry: counted bytes only" in text
    assert "RSS +" not in text
    assert "BALANCE" not in text
    assert "RSS 0" not in text


def test_informal_issues_stand_in_the_full_report_only():
    assert "dry_outputs_invalid" not in render(samples.dry())
    assert "info dry_outputs_invalid" in render(samples.dry(), full=True)


def test_many_instances_fold():
    text = render(samples.llama(), full=True)
    assert "XnnpackBackend[0..23]" in text
    assert "OpenvinoBackend[24..25]" in text
    assert text.count("XnnpackBackend[7]") == 0
    assert len(render(samples.llama()).splitlines()) < 24


def test_iterations_fold_unless_one_sets_a_new_peak():
    summary = samples.llama()
    assert "inference forward 2..15" in render(summary, full=True)
    higher = samples.replace(summary.phases[9].peak, private_bytes=summary.phases[9].peak.private_bytes + samples.MIB)
    phases = list(summary.phases)
    phases[9] = samples.replace(phases[9], peak=higher)
    text = render(samples.replace(summary, phases=tuple(phases)), full=True)
    assert "inference forward 2..7 " in text
    assert "inference forward 8 " in text
    assert "inference forward 9..15" in text


def test_constant_methods_are_one_line():
    lines = [line for line in render(samples.llama()).splitlines() if "get_vocab_size" in line]
    assert len(lines) == 1
    assert lines[0].startswith("constant methods, not run (4)")


def test_more_findings_than_three_are_counted():
    base = samples.convs()
    text = render(samples.replace(base, findings=base.findings * 2))
    assert "and 1 more: --full" in text
    assert "\n4 " in render(samples.replace(base, findings=base.findings * 2), full=True)
