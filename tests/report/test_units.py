"""Figures and names as text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from etmem.report.units import MIB, choose_scale, clean, dtype, file_size, index_ranges, shorten


@given(st.integers(), st.sampled_from([1, 4_000, 5 * MIB, 2**40]), st.booleans())
def test_only_zero_is_a_dash(count, largest, exact):
    text = choose_scale(largest, exact=exact).number(count)
    assert (text == "-") == (count == 0)


@given(st.text(), st.integers(min_value=1, max_value=60))
def test_clean_text_is_printable_ascii_of_limited_length(text, limit):
    cleaned = clean(text, limit)
    assert cleaned.isascii()
    assert cleaned == "" or cleaned.isprintable()
    assert len(cleaned) <= limit


@given(st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126)))
def test_plain_names_stay_as_they_are(text):
    assert clean(text) == text


def test_names_from_file_systems_that_are_not_utf8():
    assert clean("caf\udce9.pte") == "caf\\udce9.pte"


def test_shortening_keeps_both_ends():
    assert shorten("models/very_long_name.pte", 16) == "models/..ame.pte"


def test_sizes():
    assert file_size(195_072) == "0.19 MiB"
    assert file_size(67_158_000) == "64.0 MiB"
    assert file_size(54_192) == "52.9 KiB"
    assert file_size(700) == "700 B"
    assert file_size(67_158_000, exact=True) == "67,158,000 B"


def test_dtypes():
    assert [dtype(n) for n in ("float32", "int64", "bfloat16", "uint8", "bool")] == ["f32", "i64", "bf16", "u8", "bool"]


@given(st.lists(st.integers(min_value=0, max_value=40), min_size=1))
def test_index_ranges_name_every_index(indices):
    named = set()
    for part in index_ranges(indices)[1:-1].split(","):
        first, _, last = part.partition("..")
        named |= set(range(int(first), int(last or first) + 1))
    assert named == set(indices)
