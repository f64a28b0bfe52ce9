"""Collapsed stacks: one line per path, frames joined by semicolons, and its bytes; what flamegraph.pl reads."""

from __future__ import annotations

from etmem.report.stacks import AT, path_of
from etmem.report.units import clean
from etmem.report.view import View


def render(view: View) -> bytes:
    """Live bytes at the higher of the two peaks."""
    at = AT.index(view.highest)
    sums: dict[str, int] = {}
    for row in view.stacks.rows:
        if row.live[at].bytes:
            line = ";".join(frame(view.stacks.frames[index]) for index in path_of(row))
            sums[line] = sums.get(line, 0) + row.live[at].bytes
    return "".join(f"{line} {count}\n" for line, count in sorted(sums.items())).encode("ascii")


def frame(name: str) -> str:
    """A semicolon or a line's end would begin another frame."""
    return clean(name).replace(";", ":")
