"""Names of functions, from files that a compiler makes for the test."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from etmem.analysis.modules import CodeMap, Mapped
from etmem.analysis.symbols import Symbolizer, read_symbols

SOURCE = """
int target;
static __attribute__((noinline)) void hidden(void) { target += 2; }
__attribute__((noinline)) void exported(void) { hidden(); target += 1; }
__attribute__((noinline)) void last(void) { target += 3; }
"""
BASE = 0x7F00_0000_0000


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("symbols")
    (folder / "a.c").write_text(SOURCE)
    path = folder / "liba.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", path, folder / "a.c"], check=True)
    return path


@pytest.fixture(scope="module")
def stripped(library: Path) -> Path:
    path = library.with_name("libstripped.so")
    subprocess.run(["strip", "-o", path, library], check=True)
    return path


def addresses(library: Path) -> dict[str, int]:
    listing = subprocess.run(["nm", library], check=True, capture_output=True, text=True).stdout
    fields = (line.split() for line in listing.splitlines())
    return {found[2]: int(found[0], 16) for found in fields if len(found) == 3}


def whole(path: Path) -> Symbolizer:
    return Symbolizer(CodeMap((), (Mapped(BASE, BASE + 0x10000, None, str(path)),)))


def test_return_addresses_belong_to_the_call_before_them(library: Path) -> None:
    symbolizer, at = whole(library), addresses(library)
    # After a call that never returns comes the next function.
    assert symbolizer.name(BASE + at["last"]) != "last"
    assert symbolizer.name(BASE + at["last"] + 1) == "last"
    assert symbolizer.name(BASE + at["exported"] + 1) == "exported"
    assert symbolizer.name(BASE + at["hidden"] + 1) == "hidden"


def test_a_function_without_a_symbol_is_not_taken_for_the_one_before(library: Path, stripped: Path) -> None:
    symbolizer, at = whole(stripped), addresses(library)
    assert symbolizer.name(BASE + at["hidden"] + 1) == ""
    assert symbolizer.name(BASE + at["exported"] + 1) == "exported"


def test_pieces_of_a_file_go_by_its_offsets(library: Path) -> None:
    at = addresses(library)
    table = read_symbols(str(library))
    assert table is not None
    (offset, address) = next((o, a) for o, a, size in table.loads if a <= at["exported"] < a + size)
    piece = Mapped(BASE, BASE + 0x1000, offset, str(library))
    found = Symbolizer(CodeMap((piece,)))
    assert found.name(BASE + at["exported"] - address + 1) == "exported"
    assert found.name(BASE - 0x5000) == ""


def test_stacks_are_sequences_of_names(library: Path) -> None:
    symbolizer, at = whole(library), addresses(library)
    stack = symbolizer.stack((BASE + at["hidden"] + 1, 5, BASE + at["exported"] + 1))
    assert list(stack) == ["hidden", "", "exported"]
    assert (len(stack), stack[2], list(stack[1:])) == (3, "exported", ["", "exported"])
    assert symbolizer.unreadable == set()


def test_files_that_are_gone_or_something_else(tmp_path: Path) -> None:
    text = tmp_path / "not_elf.so"
    text.write_text("no")
    for path in (text, tmp_path / "gone.so"):
        symbolizer = whole(path)
        assert symbolizer.name(BASE + 100) == ""
        assert symbolizer.unreadable == {str(path)}
