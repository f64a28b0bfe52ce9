"""docs/reference/c-abi.md follows from the header."""

from __future__ import annotations

import re

from tools import gen_abi_reference


def test_the_reference_is_up_to_date() -> None:
    text = gen_abi_reference.page(gen_abi_reference.HEADER.read_text())
    assert gen_abi_reference.PAGE.read_text() == text, "run python tools/gen_abi_reference.py"


def test_every_public_function_is_in_it_and_says_where_it_may_be_called() -> None:
    header = gen_abi_reference.HEADER.read_text()
    declared = set(re.findall(r"^static inline [^(]*?\b(etmem_\w*[a-z])\(", header, re.MULTILINE))
    functions = {entry.name: entry for entry in gen_abi_reference.entries(header) if entry.kind == "function"}
    assert set(functions) == declared
    for name, entry in functions.items():
        assert "Thread-safe" in entry.text, name
