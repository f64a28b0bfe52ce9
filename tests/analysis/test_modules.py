"""Lines of /proc/self/maps, and numbers in notes: a damaged trace may hold anything in their place."""

from __future__ import annotations

from pathlib import Path

import pytest

from etmem.analysis.modules import Vma, parse_maps
from etmem.model.errors import TraceError
from etmem.trace.tables import as_number
from etmem.trace.writer import TraceBuilder


def test_the_lines_of_this_process() -> None:
    text = Path("/proc/self/maps").read_text()
    found = parse_maps(text)
    lines = [line for line in text.splitlines() if "[vsyscall]" not in line]
    assert len(found) == len(lines)
    for vma, line in zip(found, lines, strict=True):
        start, end = line.split()[0].split("-")
        assert (vma.start, vma.end) == (int(start, 16), int(end, 16))
        assert line.rstrip().endswith(vma.path)


def test_paths_and_torn_ends() -> None:
    lines = (
        "7f00-7f01 r-xp 00002000 fe:00 26                 /a b\u2028c (deleted)\n"
        "7f02-7f03 rw-p 00000000 00:00 0 \n"
        "7f04-7f05 rw-p 000"
    )
    assert parse_maps(lines) == (
        Vma(0x7F00, 0x7F01, "r-xp", 0x2000, "/a b\u2028c"),
        Vma(0x7F02, 0x7F03, "rw-p", 0, ""),
    )


@pytest.mark.parametrize("line", ["nothing", "\0\0\0-\0\0 r--p", "fffffffffffff000-ffffffffffffffff r--p 0 0:0 0 x"])
def test_lines_that_are_none_are_damage(line: str) -> None:
    b = TraceBuilder()
    b.snapshot("x", rss_bytes=1, maps=f"{line}\n7f00-7f01 r--p 0 fe:00 1 x\n")
    with pytest.raises(TraceError, match="lines of /proc/self/maps that are none"):
        b.trace()


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("4096", 4096), ("", None), ("-1", None), ("x", None), ("\u0663", None), ("9" * 5000, None)],
)
def test_numbers_of_notes(text: str, number: int | None) -> None:
    assert as_number(text) == number
