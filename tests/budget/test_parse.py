"""Budgets as text: sizes, and every mistake told with its place."""

from __future__ import annotations

import pytest

from etmem.analysis.budget_model import Measure, Tolerance, What
from etmem.analysis.budget_parse import parse_budget, parse_size
from etmem.model.errors import InputError
from etmem.model.words import Category

HEAD = 'schema = "etmem.budget/1"\n'


def budget(*lines: str) -> str:
    return HEAD + "[[limit]]\n" + "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("20 MiB", 20 * 2**20), ("20MB", 20_000_000), ("1.5 KiB", 1536), ("1 KB", 1000), ("2gib", 2**31),
        ("0", 0), (4096, 4096), ("1,024 B", 1024), ("0.1 MiB", 104_858), ("9007199254740993", 9_007_199_254_740_993),
    ],
)  # fmt: skip
def test_sizes(text, count):
    assert parse_size(text, "max") == count


@pytest.mark.parametrize("text", ["", "MiB", "-1", -1, "1 MiBi", "1 mb2", "1..5 MB", True, None, 1.5, "20 %", "1e6"])
def test_what_is_no_size(text):
    with pytest.raises(InputError, match=r"limit\[0\]\.max is"):
        parse_size(text, "limit[0].max")


def test_a_limit_s_fields_and_defaults():
    text = (
        budget('what = "load"', 'max = "20 MiB"') + '\n[[limit]]\nwhat = "later_inference"\nmeasure = "allocations"\n'
    )
    text += 'max = 0\nmethod = "decode"\nname = "no malloc"\n[[limit]]\nwhat = "overall"\nmeasure = "live"\n'
    text += 'owner = "delegate:XnnpackBackend"\ncategory = "packed_weights"\nbaseline = "b.zip"\ntolerance = "2.5 %"\n'
    first, second, third = parse_budget(text).limits
    assert (first.what, first.measure, first.max, first.tolerance.of(100)) == (What.LOAD, Measure.PRIVATE, 20 << 20, 0)
    assert (second.measure, second.max, second.method, second.name) == (Measure.ALLOCATIONS, 0, "decode", "no malloc")
    assert (third.category, third.baseline) == (Category.PACKED_WEIGHTS, "b.zip")
    assert third.tolerance == Tolerance(percent=2.5)
    assert parse_budget(text).repeats == 1


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", "schema"),
        ('schema = "etmem.budget/2"', "schema"),
        (HEAD, "limit"),
        (HEAD + "limit = 3", "limit"),
        (HEAD + "limit = []", "limit"),
        (HEAD + "[[limits]]\nwhat = 'load'", "limits is not known (did you mean 'limit'?)"),
        ("repeats = 0\n" + budget('what = "load"', "max = 1"), "repeats"),
        (budget("max = 1"), "limit[0].what is missing"),
        (budget('what = "lode"', "max = 1"), "limit[0].what is 'lode' (did you mean 'load'?)"),
        (budget('what = "load"'), "limit[0] needs either max or baseline"),
        (budget('what = "load"', "max = 1", 'baseline = "x"'), "limit[0] needs either"),
        (budget('what = "load"', "maximum = 1"), "limit[0].maximum is not known"),
        (budget('what = "load"', 'max = "1 MiBs"'), "limit[0].max"),
        (budget('what = "load"', 'measure = "size"', "max = 1"), "limit[0].measure"),
        (budget('what = "load"', 'owner = "XnnpackBackend"', "max = 1"), "limit[0].owner"),
        (budget('what = "load"', 'owner = "profiler"', "max = 1"), "limit[0].owner"),
        (budget('what = "load"', 'category = "weights"', "max = 1"), "limit[0].category"),
        (budget('what = "load"', 'owner = "executorch"', 'category = "workspace"', "max = 1"), "never has"),
        (budget('what = "load"', 'owner = "delegate:B"', 'category = "planned_memory"', "max = 1"), "never has"),
        (budget('what = "load"', 'category = "inputs_outputs"', "max = 1"), "never has"),
        (budget('what = "load"', 'tolerance = "x"', "max = 1"), "limit[0].tolerance"),
        (budget('what = "load"', "method = 3", "max = 1"), "limit[0].method"),
        (budget('what = "load"', 'measure = "allocations"', 'max = "1 MiB"'), "limit[0].max"),
        (budget('what = "steady"', 'measure = "allocated"', "max = 1"), "at an instant"),
        (budget('what = "load"', 'measure = "allocated"', 'owner = "executorch"', "max = 1"), "one owner allocates"),
        (budget('what = "load"', 'measure = "rss"', 'owner = "executorch"', 'max = "9 MiB"'), "does not tell by owner"),
        ("[[limit", "not TOML"),
    ],
)
def test_mistakes_are_told_with_their_place(text, place):
    with pytest.raises(InputError) as caught:
        parse_budget(text)
    assert place in caught.value.message
    assert "docs/budgets.md" in caught.value.hint


@pytest.mark.parametrize("tolerance", ["", 'tolerance = "1 MiB"', "tolerance = 0", 'tolerance = "5 %"'])
def test_a_limit_on_rss_that_would_flap_is_refused(tolerance):
    with pytest.raises(InputError, match="flaps"):
        parse_budget(budget('what = "load"', 'measure = "rss"', 'max = "60 MiB"', tolerance))


def test_a_limit_on_rss_with_room_is_taken():
    lines = ('what = "load"', 'measure = "rss"', 'max = "60 MiB"')
    assert parse_budget(budget(*lines, 'tolerance = "4 MiB"')).limits[0].tolerance.of(0) == 4 << 20
    assert parse_budget(budget(*lines, 'tolerance = "10 %"')).limits[0].tolerance.percent == 10
