"""Every word that a report can print has an explanation."""

from __future__ import annotations

import pytest

from etmem.analysis import places
from etmem.analysis.budget_model import Measure, What
from etmem.analysis.diff_model import MismatchCode, ReasonCode
from etmem.matrix.model import RowStatus
from etmem.model.errors import UsageError
from etmem.model.words import (
    EXECUTORCH,
    HOST,
    PROFILER,
    Category,
    Certainty,
    FindingCode,
    IssueCode,
    PhaseKind,
    Severity,
    Source,
)
from etmem.report.explain import KINDS, entries, find, render, render_index

ENUMS = {
    Category: "category",
    PhaseKind: "phase",
    IssueCode: "issue",
    FindingCode: "finding",
    Certainty: "certainty",
    Severity: "severity",
    Source: "source",
}


@pytest.mark.parametrize(("enum", "kind"), ENUMS.items(), ids=ENUMS.values())
def test_every_member_has_an_entry_and_none_is_left_over(enum, kind):
    explained = {entry.word for entry in entries().values() if entry.kind == kind}
    words = {member.value for member in enum}
    assert words <= explained
    beside = {"load", "steady", "outside"} if enum is PhaseKind else set()
    assert explained - words == beside


@pytest.mark.parametrize("enum", [MismatchCode, ReasonCode, What, Measure, RowStatus])
def test_what_a_diff_a_budget_and_a_matrix_print_is_explained(enum):
    for member in enum:
        if member.value not in ("ok", "failed"):
            assert find(member.value).word == member.value


def test_every_mismatch_is_found_as_the_first_line_of_a_diff_names_it():
    assert {find(code.short).word for code in MismatchCode} == {code.value for code in MismatchCode}
    kinds = {"mismatch", "issue"}
    assert {find(code.value).kind for code in MismatchCode} == kinds


@pytest.mark.parametrize("owner", [EXECUTORCH, HOST, PROFILER, "delegate:XnnpackBackend", "delegate:OpenvinoBackend"])
def test_owners(owner):
    assert find(owner).kind == "owner"


@pytest.mark.parametrize(
    "line",
    [
        places.PROGRAM_FILE,
        places.OTHER_LIBRARIES,
        places.STACKS,
        places.RETAINED,
        "libraries of OpenvinoBackend",
        "unaccounted",
    ],
)
def test_balance_lines_by_the_names_that_analysis_gives_them(line):
    assert find(line).kind in ("balance line", "category")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("double-weights", "double_weights"),
        ("Packed Weights", "packed_weights"),
        ("planned[1]", "planned_memory"),
        ("XnnpackBackend[0..2]", "delegate"),
        (" RSS ", "rss"),
        ("NO VERDICT", "no_verdict"),
        ("OVER BUDGET", "over_budget"),
        ("malloc kept", "malloc_kept"),
        ("RSS growth", "rss_growth"),
        ("live bytes", "live_bytes"),
        ("retention", "retention"),
    ],
)
def test_words_as_users_spell_them(text, word):
    assert find(text).word == word


def test_an_unknown_word_names_the_nearest():
    with pytest.raises(UsageError) as caught:
        find("packd weights\x1b[0m")
    assert "packed_weights" in caught.value.hint
    assert "\x1b" not in caught.value.message


@pytest.mark.parametrize("entry", entries().values(), ids=entries())
def test_texts_are_complete_short_and_print_in_eighty_columns(entry):
    assert entry.kind in KINDS
    assert entry.means.endswith(".")
    assert entry.do.endswith(".")
    assert len(entry.means) < 420
    for line in render(entry).splitlines():
        assert len(line) <= 80
        assert line.isascii()


def test_the_index_lists_every_word():
    listed = render_index().replace(",", " ").split()
    assert set(entries()) <= set(listed)
