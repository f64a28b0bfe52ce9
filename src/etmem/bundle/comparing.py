"""Two results or two programs, by their paths, compared."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from etmem.bundle.sources import Kind, Result, kind_of, load
from etmem.model.errors import EtmemError, UsageError

if TYPE_CHECKING:
    from etmem.analysis.diff_model import Diff
    from etmem.analysis.diff_program import FileFigure, ProgramDiff


def compare_runs(a: Path, b: Path) -> Diff:
    """What changed from the run of ``a`` to that of ``b``. Raises InputError and TraceError."""
    return _compare(load(a), load(b), _names(a, b))


def compare_as_page(a: Path, b: Path) -> tuple[Diff, str]:
    """The same, and as an HTML page with both timelines."""
    from etmem.report.diff_html import render

    old, new = load(a, page=True), load(b, page=True)
    found = _compare(old, new, _names(a, b))
    assert old.page is not None
    assert new.page is not None
    return found, render(found, old.page, new.page)


def _compare(old: Result, new: Result, names: tuple[str, str]) -> Diff:
    from etmem.analysis.diff import diff

    blocks = (old.blocks, new.blocks) if old.blocks is not None and new.blocks is not None else None
    return diff(old.summary, new.summary, names=names, blocks=blocks)


def compare_programs(a: Path, b: Path) -> ProgramDiff:
    """What the files say. Raises UsageError where one of the two is a result."""
    from etmem.analysis.diff_program import diff_programs
    from etmem.program import read

    for path in (a, b):
        if kind_of(path) is not Kind.PROGRAM:
            raise UsageError(f"{path} is a result and the other a program", "etmem profile makes a result of a program")
    estimates = (program_estimate(a), program_estimate(b))
    # One alone would be a difference of what is known, not of the programs.
    kept = estimates if all(estimates) else ((), ())
    return diff_programs(read(a), read(b), names=_names(a, b), estimates=kept)


def program_estimate(path: Path) -> tuple[FileFigure, ...]:
    """What ``etmem plan`` expects of a program on this machine; empty where it cannot tell."""
    from etmem.analysis.diff_program import estimate
    from etmem.planning.build import plan

    try:
        return estimate(plan(path).estimate)
    except EtmemError:
        return ()


def _names(a: Path, b: Path) -> tuple[str, str]:
    """File names, with their folders where those alone tell them apart."""
    return (a.name, b.name) if a.name != b.name else (str(a), str(b))
